#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "workloads/comm.h"

namespace lockstep {

/// Bytes of an element by nccl-tests' name of its type ("float", "bfloat16", …); 0: no such type.
std::int64_t nccl_element_bytes(std::string_view type);

/// What a row of nccl-tests says of its operation beside the times.
struct NcclTableRow {
  std::int64_t bytes = 0, elements = 0;
  std::string type;        ///< of the elements
  std::string reduction;   ///< "sum", …, "none"; empty: no such column
  std::int64_t root = -1;  ///< -1: none
  double algbw_Bps = 0, busbw_Bps = 0;
  double time_s = 0;
  bool unit_told = false;  ///< of the time
  bool root_told = false;  ///< -1, too
};

/// The operation that such a row can only be of, for tables that were kept without the command:
///
///   reduction  root  elements    busbw / algbw
///   yes        none  all         above 1        all-reduce
///   yes        none  all / n                    reduce-scatter
///   yes        some  all                        reduce
///   no         some  all                        broadcast
///
/// kNone where it may be of several: all-gather and all-to-all look alike, and so do a send/receive
/// and an all-reduce of two ranks.
CommType op_of(const NcclTableRow& row);

/// Whether such a row is not one of a program of nccl-tests ("all_reduce_perf"), by its reduction,
/// root and ratio of bandwidths. Send/receives are printed with or without a reduction.
bool contradicts(const NcclTableRow& row, std::string_view program);

/// Bus bandwidth over algorithm bandwidth, by nccl-tests' PERFORMANCE.md; 0: not known.
double nccl_bus_factor(CommType op, std::int32_t ranks);

/// Ranks from the ratio of bus to algorithm bandwidth (nccl-tests' PERFORMANCE.md) of a table's
/// fastest row; 0 where it says too little.
std::int32_t ranks_by_ratio(const NcclTableRow& fastest, CommType op);

}  // namespace lockstep
