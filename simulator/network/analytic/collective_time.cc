#include "simulator/network/analytic/collective_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "simulator/network/analytic/bus_bandwidth.h"

namespace lockstep {
namespace {

/// A message of any size takes at least this long: SimAI's table for messages below 1 MiB (2 ranks
/// 10 us, … 128 ranks 320 us), between its entries linear in log2(ranks) and beyond them with the
/// slope of the last two.
double latency_floor(std::int64_t ranks) {
  constexpr std::array<double, 7> kUs{10, 12, 15, 66, 135, 200, 320};  // 2, 4, 8, … 128 ranks
  if (ranks <= 1) {
    return 0;
  }
  const double place = std::log2(static_cast<double>(ranks)) - 1;
  const std::size_t low = std::min(static_cast<std::size_t>(place), kUs.size() - 2);
  return (kUs[low] + (kUs[low + 1] - kUs[low]) * (place - static_cast<double>(low))) * 1e-6;
}

/// Bytes that cross the bus per byte of the tensor.
double traffic_factor(CommType op, double n) {
  switch (op) {
    case CommType::kAllReduce:
      return 2 * (n - 1) / n;
    case CommType::kAllGather:
    case CommType::kReduceScatter:
    case CommType::kAllToAll:
      return (n - 1) / n;
    case CommType::kBroadcast:
    case CommType::kReduce:
    case CommType::kSendRecv:
      return 1;
    case CommType::kNone:
    case CommType::kBarrier:
      break;
  }
  return 0;
}

/// Ranks between neighbours of a group.
std::int64_t stride_of(GroupKind group, const GroupDegrees& d) {
  switch (group) {
    case GroupKind::kTp:
    case GroupKind::kWorld:
      return 1;
    case GroupKind::kDp:
    case GroupKind::kEp:
    case GroupKind::kCp:
      return d.tp;
    case GroupKind::kDpEp:
      return d.tp * d.ep;
    case GroupKind::kPp:
      break;
  }
  return std::max<std::int64_t>(d.gpus / d.pp, 1);
}

/// `each` ranks on each of so many servers, `fewest` on one of them, through whose NICs as much
/// goes as through the others'; the rest of a server's NICs are other ranks'.
GroupPlacement<double> on_servers(std::int64_t servers, std::int64_t each, std::int64_t fewest,
                                  const AnalyticOptions& o) {
  const auto least = static_cast<double>(fewest);
  return {static_cast<double>(servers), static_cast<double>(each),
          servers == 1 ? static_cast<double>(o.nics_per_server) : o.gpu_nics() * least, least};
}

/// Ranks `stride` apart fill server after server.
GroupPlacement<double> shape_of(std::int64_t ranks, std::int64_t stride, const AnalyticOptions& o) {
  const std::int64_t fit = std::max<std::int64_t>(o.gpus_per_server / stride, 1);
  const std::int64_t servers = std::max<std::int64_t>(1, (ranks + fit - 1) / fit);
  return on_servers(servers, std::min(ranks, fit), ranks - (servers - 1) * fit, o);
}

double efficiency(const Collective& c, const GroupPlacement<double>& shape,
                  const EfficiencyTables& t, bool nvlink_limited) {
  const bool gathers = c.op == CommType::kAllGather || c.op == CommType::kReduceScatter;
  if (c.group == GroupKind::kTp && gathers) {
    return relative_efficiency(nvlink_limited ? t.nvlink : t.nic, c.bytes, shape.nodes);
  }
  if (c.op == CommType::kAllToAll && (c.group == GroupKind::kTp || c.group == GroupKind::kEp)) {
    return shape.nodes > 1 && shape.ranks_per_node <= 1
               ? relative_multi_efficiency(t.all_to_all, c.bytes)
               : relative_efficiency(t.all_to_all, c.bytes, shape.nodes);
  }
  return 1;
}

double effective_bandwidth(const Collective& c, const GroupPlacement<double>& shape,
                           const AnalyticOptions& o) {
  if (const auto measured = o.measured.find(c.group, c.op)) {
    return measured->bytes_per_second();
  }
  if (c.op == CommType::kSendRecv && shape.nodes > 1) {  // each rank has its own NICs, no others'
    return stage_bandwidth(o.gpus_per_server + 1, o).bytes_per_second();
  }
  if (c.op == CommType::kSendRecv && o.pair) {
    return o.pair->bytes_per_second();
  }
  if (c.op == CommType::kAllToAll && shape.nodes > 1) {
    // What a rank sends to other servers through its part of the NICs: where the fewest are, most.
    const auto n = static_cast<double>(c.ranks);
    return o.gpu_nic_rate().bytes_per_second() * (n - 1) / (n - shape.fewest_per_node) *
           efficiency(c, shape, o.efficiency, false);
  }
  const BusBandwidth<double> bus = bus_bandwidth(c.op, shape, o.nvlink_rate().bytes_per_second(),
                                                 o.nic_rate().bytes_per_second());
  return bus.rate * efficiency(c, shape, o.efficiency, bus.nvlink_limited || shape.nodes <= 1);
}

}  // namespace

Time placed_collective_time(const Collective& c, const GroupPlacement<double>& shape,
                            const AnalyticOptions& options) {
  const bool carries = c.bytes.count() > 0 || c.op == CommType::kBarrier;
  if (c.op == CommType::kNone || c.ranks <= 1 || !carries) {
    return Time();
  }
  const double bytes =
      static_cast<double>(c.bytes.count()) * traffic_factor(c.op, static_cast<double>(c.ranks));
  const double transfer = bytes > 0 ? bytes / effective_bandwidth(c, shape, options) : 0;
  return Time::seconds(
      std::max(transfer, latency_floor(c.op == CommType::kSendRecv ? 2 : c.ranks)));
}

Time default_collective_time(const Collective& c, const GroupDegrees& degrees,
                             const AnalyticOptions& options) {
  return placed_collective_time(c, shape_of(c.ranks, stride_of(c.group, degrees), options),
                                options);
}

GroupPlacement<double> placement_of(std::span<const std::int32_t> members,
                                    const AnalyticOptions& options) {
  std::vector<std::int32_t> sorted;
  if (!std::ranges::is_sorted(members)) {
    sorted.assign(members.begin(), members.end());
    std::ranges::sort(sorted);
    members = sorted;
  }
  std::int64_t spanned = 0, most = 1, fewest = std::max<std::int64_t>(1, std::ssize(members));
  for (std::size_t i = 0; i < members.size();) {
    const std::size_t first = i;
    const std::int64_t server = members[i] / options.gpus_per_server;
    while (i < members.size() && members[i] / options.gpus_per_server == server) {
      ++i;
    }
    ++spanned;
    most = std::max(most, static_cast<std::int64_t>(i - first));
    fewest = std::min(fewest, static_cast<std::int64_t>(i - first));
  }
  return on_servers(std::max<std::int64_t>(1, spanned), most, fewest, options);
}

Time collective_time(const Collective& collective, const GroupDegrees& degrees,
                     const AnalyticOptions& options) {
  return options.flavour == Flavour::kSimai ? simai_collective_time(collective, degrees, options)
                                            : default_collective_time(collective, degrees, options);
}

Bandwidth stage_bandwidth(std::int64_t gpus, const AnalyticOptions& options) {
  if (options.measured.pipeline) {
    return *options.measured.pipeline;
  }
  if (gpus <= options.gpus_per_server) {
    return options.pair_rate();
  }
  return options.gpu_nic_rate();
}

}  // namespace lockstep
