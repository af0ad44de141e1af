#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A column of nccl-tests' tables.
enum class NcclColumn {
  kSize,
  kCount,
  kType,
  kRedop,
  kRoot,
  kTime,
  kAlgbw,
  kBusbw,
  kWrong,
  kTimeIn,
  kOther
};

/// Those of a row without a header, by its words: since 2.13 all operations have a reduction and a
/// root; before, sums had the reduction (12 words), broadcasts the root (12), others neither (11).
const std::vector<NcclColumn>& usual_nccl_columns(const std::vector<std::string_view>& row);

/// The columns of a header line, as words; empty if it is none. Words behind the first column that
/// are not known name columns too, where one is of bandwidths.
std::vector<NcclColumn> nccl_header_columns(const std::vector<std::string_view>& words);

/// Whether the words are a row's beginning: whole numbers and a type where the columns want them.
bool nccl_row_fits(const std::vector<NcclColumn>& columns,
                   const std::vector<std::string_view>& words);

/// A row is printed in pieces, of which NCCL's log may come between: what is measured, then the
/// results, each of which begins with its time. The end of the piece that so many words are a row
/// up to, of whose last one NCCL's log may have made a longer word; 0: of none.
std::size_t nccl_piece_end(const std::vector<NcclColumn>& columns, std::size_t words);

/// Where on a header's line its columns of times end, under which those of its rows do.
struct NcclLayout {
  std::vector<std::ptrdiff_t> time_ends;
  bool timestamps = false;  ///< of the day, in any number of words behind the columns

  /// Whether a row's first time stands below the second column of times: the results out of place
  /// are left blank.
  bool first_is_second(const std::vector<NcclColumn>& columns,
                       const std::vector<std::string_view>& words, std::string_view line) const;
};
NcclLayout nccl_layout(const std::vector<std::string_view>& words, std::string_view line);

/// Where NCCL's log begins, if a row's last number stands right before the name of one of the hosts
/// in the word at `info`, which find_nccl_info() took for one: "9node-a:100:200".
std::size_t skip_glued_number(std::string_view line, std::size_t info,
                              const std::vector<std::string>& hosts);

/// Drops "2026-01-02 10:11:12" from the end of a row, where a column has it.
void drop_timestamp(std::vector<std::string_view>& words);

/// Whether a text's beginning is output of nccl-tests: its comments, a header or a row of a table.
bool is_of_nccl_tests(std::string_view head);

/// Drops tags that drop_tags does not know ("May 12 10:11:12 node1 nccl[9]: ", "node1 | "): as many
/// words as stand before the marks of nccl-tests' own comments, from the first of these on.
class NcclLinePrefix {
 public:
  void drop(std::string_view& line);

 private:
  std::size_t words_ = 0;
};

}  // namespace lockstep
