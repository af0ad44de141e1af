#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "generator/count.h"

namespace lockstep {

inline constexpr std::string_view kCsvHeader =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
    "busbw,count\n";

/// One row of AICB's general-purpose workload CSV. An empty group is AICB's None.
struct CsvRow {
  std::string_view type;   ///< "all_reduce", "computation", …
  std::string_view group;  ///< "dp_group", …, "all"
  std::optional<Count> group_size;
  std::string_view size;  ///< bytes, or the shapes of a computation
  std::string_view stage;
  std::optional<Count> dst = {}, src = {};
  std::string_view additional = {};
  std::optional<Count> elapsed_ns = {};
};

void append(std::string& text, const CsvRow& row);

/// A communication of `bytes` over a group.
void append_comm(std::string& text, std::string_view type, std::string_view group,
                 std::optional<Count> group_size, Count bytes, std::string_view stage);

/// Shapes of a matrix product as AICB prints them: "((4096 1 4096) (4096 6144))".
std::string shapes(Count a, Count b, Count c, Count d, Count e);  ///< (a,b,c)(d,e)
std::string shapes(Count a, Count b, Count c, Count d);           ///< (a,b)(c,d)

/// `base` as AICB makes a file name of it: from its last slash up to the first dot behind.
std::string csv_file_name(std::string_view base);

}  // namespace lockstep
