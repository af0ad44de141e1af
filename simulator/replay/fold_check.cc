#include "simulator/replay/fold_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

void check_fold(const ReplayResult& folded, const ReplayResult& full, const OpNames& name_of) {
  for (std::size_t rank = 0; rank < full.rank_end.size(); ++rank) {
    if (folded.rank_end[rank] != full.rank_end[rank]) {
      throw Error(fmt::format("rank {} ends at {} ps when folded by symmetry, at {} ps in full",
                              rank, folded.rank_end[rank].count_ps(),
                              full.rank_end[rank].count_ps()))
          .hint("this is a defect of the program; --no-symmetry gives the right answer");
    }
  }
  for (std::size_t op = 0; op < full.first_rank.size(); ++op) {
    const OpTiming &a = folded.first_rank[op], &b = full.first_rank[op];
    // Before it began on this rank it matters to nothing, and a message of no bytes leaves that
    // open.
    const bool alike = std::max(a.moved, a.begin) == std::max(b.moved, b.begin);
    if (a.begin != b.begin || a.end != b.end || !alike) {
      throw Error(
          fmt::format(
              "rank 0's {} runs from {} to {} ps (data from {} ps) when folded by symmetry, "
              "from {} to {} ps (data from {} ps) in full",
              name_of(0, static_cast<std::int32_t>(op)), a.begin.count_ps(), a.end.count_ps(),
              a.moved.count_ps(), b.begin.count_ps(), b.end.count_ps(), b.moved.count_ps()))
          .hint("this is a defect of the program; --no-symmetry gives the right answer");
    }
  }
  if (folded.transfers != full.transfers) {
    throw Error(fmt::format("{} transfers when folded by symmetry, {} in full", folded.transfers,
                            full.transfers))
        .hint("this is a defect of the program; --no-symmetry gives the right answer");
  }
}

void check_ports(std::span<const PortUse> folded, std::span<const PortUse> full,
                 bool links_change) {
  constexpr double kRounding = 1e-9;
  LOCKSTEP_CHECK(folded.size() == full.size(), "both know every port");
  const auto differ = [](double a, double b, double least) {
    return std::abs(a - b) > least + kRounding * std::max(a, b);
  };
  for (std::size_t port = 0; port < full.size(); ++port) {
    const PortUse &a = folded[port], &b = full[port];
    if (differ(static_cast<double>(a.bytes.count()), static_cast<double>(b.bytes.count()), 1) ||
        (!links_change && differ(static_cast<double>(a.busy.count_ps()),
                                 static_cast<double>(b.busy.count_ps()), 1000))) {
      throw Error(fmt::format("port {} carries {} bytes in {} ps when folded by symmetry, {} bytes "
                              "in {} ps in full",
                              port, a.bytes.count(), a.busy.count_ps(), b.bytes.count(),
                              b.busy.count_ps()))
          .hint("this is a defect of the program; --no-symmetry gives the right answer");
    }
  }
}

}  // namespace lockstep
