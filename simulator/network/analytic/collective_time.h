#pragma once

#include <cstdint>
#include <span>

#include "base/units.h"
#include "simulator/network/analytic/analytic_options.h"
#include "simulator/network/analytic/bus_bandwidth.h"
#include "workloads/comm.h"

namespace lockstep {

/// One collective as the analytic model sees it.
struct Collective {
  CommType op = CommType::kNone;
  GroupKind group = GroupKind::kTp;
  std::int64_t ranks = 1;  ///< in the group
  Bytes bytes;             ///< the full tensor
};

/// What decides how a group's ranks lie on servers: neighbours in a group of kind TP are 1 rank
/// apart, in EP, CP and DP tp ranks, in DP_EP tp * ep ranks, in PP gpus / pp ranks.
struct GroupDegrees {
  std::int64_t gpus = 1, tp = 1, ep = 1, pp = 1;
};

/// How long a collective takes when it is alone; docs/models.md gives the formulas.
///
/// Flavour simai: SimAI's single-precision arithmetic in its order, cut to whole nanoseconds.
/// Negative where a server has fewer NICs than groups that share them: SimAI then divides by an
/// error code.
/// Flavour default: the same structure in double precision, rounded to the picosecond; never
/// decreasing in bytes; all bandwidths times k give 1/k of the time above the latency floor.
///
/// ERRORS (simai): a size above the efficiency table. Both: a time out of range.
/// PRECONDITION: validate(options) passes; degrees and ranks are at least 1 (simai: ranks 0 is a
/// group of nobody and takes no time).
Time collective_time(const Collective& collective, const GroupDegrees& degrees,
                     const AnalyticOptions& options);
Time simai_collective_time(const Collective& collective, const GroupDegrees& degrees,
                           const AnalyticOptions& options);
Time default_collective_time(const Collective& collective, const GroupDegrees& degrees,
                             const AnalyticOptions& options);

/// Flavour default, of a group whose place on servers is known.
Time placed_collective_time(const Collective& collective, const GroupPlacement<double>& shape,
                            const AnalyticOptions& options);

/// How `members` lie on servers of o.gpus_per_server ranks each, one after the other: on how many,
/// and how many at most on one; groups that start in one server share its NICs.
/// O(members) where they ascend, else O(members log members).
GroupPlacement<double> placement_of(std::span<const std::int32_t> members,
                                    const AnalyticOptions& options);

/// Flavour default: what a rank reaches when it sends to its peer in the next pipeline stage: the
/// measured pipeline bandwidth, else NVLink if the job fits in one server, else the rank's share of
/// the NICs.
Bandwidth stage_bandwidth(std::int64_t gpus, const AnalyticOptions& options);

}  // namespace lockstep
