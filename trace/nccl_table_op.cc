#include "trace/nccl_table_op.h"

#include <algorithm>
#include <cmath>
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

bool contradicts(const NcclTableRow& row, std::string_view program) {
  const CommType op = comm_type_in(program);
  const std::string_view pattern = pattern_in(program);
  if (op == CommType::kNone && pattern.empty()) {
    return false;
  }
  const bool reduces =
      op == CommType::kAllReduce || op == CommType::kReduceScatter || op == CommType::kReduce;
  const bool rooted = op == CommType::kReduce || op == CommType::kBroadcast ||
                      pattern == "gather" || pattern == "scatter";
  if (op != CommType::kSendRecv && !row.reduction.empty() && reduces != (row.reduction != "none")) {
    return true;
  }
  if (row.root >= 0 ? !rooted : row.root_told && rooted) {
    return true;
  }
  if (row.algbw_Bps < 1e9 || row.busbw_Bps <= 0) {
    return false;  // two digits say too little
  }
  // 2 (n - 1) / n of an all-reduce; (n - 1) / n, or 1, of all others.
  const double ratio = row.busbw_Bps / row.algbw_Bps;
  return op == CommType::kAllReduce ? ratio < 0.97 : ratio > 1.1;
}

double nccl_bus_factor(CommType op, std::int32_t ranks) {
  if (ranks < 2) {
    return 0;
  }
  const double part = static_cast<double>(ranks - 1) / ranks;
  switch (op) {
    case CommType::kAllReduce:
      return 2 * part;
    case CommType::kAllGather:
    case CommType::kReduceScatter:
    case CommType::kAllToAll:
      return part;
    case CommType::kBroadcast:
    case CommType::kReduce:
    case CommType::kSendRecv:
      return 1;
    default:
      return 0;
  }
}

std::int32_t ranks_by_ratio(const NcclTableRow& fastest, CommType op) {
  const double algbw = fastest.algbw_Bps, busbw = fastest.busbw_Bps;
  if (algbw < 1e9) {
    return 0;
  }
  const double ratio = busbw / algbw / (op == CommType::kAllReduce ? 2 : 1);
  const double ranks = 1 / (1 - ratio), slack = 0.006e9 / algbw * ranks * ranks;
  const bool told = op == CommType::kAllReduce || op == CommType::kAllGather ||
                    op == CommType::kReduceScatter || op == CommType::kAllToAll;
  return told && ratio < 1 && slack < 0.4 && ranks < 4096
             ? static_cast<std::int32_t>(std::lround(ranks))
             : 0;
}

}  // namespace lockstep
