#include "trace/nccl_table_op.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep {

std::int64_t nccl_element_bytes(std::string_view type) {
  constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
      {"int8", 1},   {"uint8", 1},  {"char", 1},   {"fp8_e4m3", 1}, {"fp8_e5m2", 1},
      {"f8e4m3", 1}, {"f8e5m2", 1}, {"half", 2},   {"float16", 2},  {"bfloat16", 2},
      {"int", 4},    {"int32", 4},  {"uint32", 4}, {"float", 4},    {"float32", 4},
      {"int64", 8},  {"uint64", 8}, {"double", 8}, {"float64", 8}};
  const auto found =
      std::ranges::find(kTypes, type, &std::pair<std::string_view, std::int64_t>::first);
  return found == std::end(kTypes) ? 0 : found->second;
}

CommType op_of(const NcclTableRow& row) {
  const std::int64_t element = nccl_element_bytes(row.type);
  if (element == 0 || row.bytes <= 0 || row.elements <= 0) {
    return CommType::kNone;
  }
  const bool reduces = !row.reduction.empty() && row.reduction != "none";
  const bool whole = row.elements == row.bytes / element;
  if (row.root >= 0) {
    return !whole ? CommType::kNone : reduces ? CommType::kReduce : CommType::kBroadcast;
  }
  if (!reduces) {
    return CommType::kNone;
  }
  constexpr double kAbove = 1.1;  // 4 / 3 of three ranks, but for rounding
  if (whole) {
    return row.busbw_Bps > kAbove * row.algbw_Bps ? CommType::kAllReduce : CommType::kNone;
  }
  return CommType::kReduceScatter;
}

}  // namespace lockstep
