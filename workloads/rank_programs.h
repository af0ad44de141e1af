#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/workload.h"

namespace lockstep {

/// Calls f(rank) for each rank of the range, ascending.
template <class F>
void for_each_rank(const RankRange& range, F&& f) {
  for (std::int64_t rank = range.first; rank < range.end; rank += range.stride) {
    f(static_cast<std::int32_t>(rank));
  }
}

/// How many ranks there are in a valid range.
constexpr std::int64_t rank_count(const RankRange& range) {
  return (std::int64_t{range.end} - range.first + range.stride - 1) / range.stride;
}

/// Checks that each pair of ranks agrees on its sends and receives, in number and in bytes.
/// `owner` is the program of each rank, -1 for none. Part of validate(). O(operations log
/// operations + ranks).
void check_peers(const OpTable& table, const std::vector<std::int32_t>& owner,
                 const std::string& path);

}  // namespace lockstep
