#pragma once

#include <cstddef>
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

/// The columns of a header line, as words; empty if it is none.
std::vector<NcclColumn> nccl_header_columns(const std::vector<std::string_view>& words);

/// Drops tags that drop_tags does not know ("May 12 10:11:12 node1 nccl[9]: ", "node1 | "): as many
/// words as stand before the marks of nccl-tests' own comments, from the first of these on.
class NcclLinePrefix {
 public:
  void drop(std::string_view& line);

 private:
  std::size_t words_ = 0;
};

}  // namespace lockstep
