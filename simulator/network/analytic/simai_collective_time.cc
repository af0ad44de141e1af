#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "simulator/network/analytic/bus_bandwidth.h"
#include "simulator/network/analytic/collective_time.h"

// SimAI's rules, figures in single precision where SimAI's are, operations in SimAI's order: the
// printed digits depend on it.

namespace lockstep {
namespace {

constexpr double kGiB = 1073741824.0;
constexpr std::int64_t kSmallLimit = 1'048'576;

bool is_simai_op(CommType op) {
  return op == CommType::kAllReduce || op == CommType::kAllGather ||
         op == CommType::kReduceScatter || op == CommType::kAllToAll;
}

/// Messages of 2 bytes to 1 MiB: by number of ranks alone.
Time small_message_time(std::int64_t ranks) {
  struct Row {
    std::int64_t ranks, us;
  };
  constexpr std::array<Row, 7> kRows{
      {{2, 10}, {4, 12}, {8, 15}, {16, 66}, {32, 135}, {64, 200}, {128, 320}}};
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.ranks == ranks; });
  return row == kRows.end() ? Time() : Time::us(row->us);
}

float gigabytes_per_second(Bandwidth rate) {
  return static_cast<float>(rate.bytes_per_second() / 1e9);
}

/// Counts are whole numbers: SimAI divides integers.
struct Shape {
  std::int64_t nodes, ranks_per_node, nics_per_node;
};

Shape shape_of(const Collective& c, const GroupDegrees& d, const AnalyticOptions& o) {
  const std::int64_t per_server = o.gpus_per_server;
  const std::int64_t nics = o.nics_per_server;
  switch (c.group) {
    case GroupKind::kTp:
      return d.tp <= per_server ? Shape{1, d.tp, nics} : Shape{d.tp / per_server, per_server, nics};
    case GroupKind::kEp:
      if (d.tp * c.ranks <= per_server) {
        return {1, per_server / d.tp, nics};
      }
      return {d.tp * c.ranks / per_server, std::max<std::int64_t>(per_server / d.tp, 1),
              d.tp > per_server ? nics / per_server : nics / d.tp};
    case GroupKind::kDp:
      return d.tp <= per_server ? Shape{c.ranks, per_server / d.tp, nics / d.tp}
                                : Shape{c.ranks, 1, nics / per_server};
    default: {
      const std::int64_t stride = d.tp * d.ep;
      return stride <= per_server ? Shape{c.ranks, per_server / stride, nics / stride}
                                  : Shape{c.ranks, 1, nics / per_server};
    }
  }
}

float efficiency(const Collective& c, const GroupDegrees& d, const AnalyticOptions& o,
                 bool nvlink_limited) {
  const auto lookup = [&](const EfficiencyTable& table, std::int64_t nodes) {
    return static_cast<float>(simai_relative_efficiency(table, c.bytes, nodes));
  };
  const std::int64_t per_server = o.gpus_per_server;
  const bool all_to_all = c.op == CommType::kAllToAll;
  if (c.group == GroupKind::kTp && !all_to_all && c.op != CommType::kAllReduce) {
    return lookup(nvlink_limited ? o.efficiency.nvlink : o.efficiency.nic,
                  d.tp < per_server ? 1 : d.tp / per_server);
  }
  if (c.group == GroupKind::kTp && all_to_all) {
    return lookup(o.efficiency.all_to_all, d.tp <= per_server ? 1 : d.tp / per_server);
  }
  if (c.group == GroupKind::kEp && all_to_all) {
    constexpr std::int64_t kMulti = 9;
    const std::int64_t ranks = d.tp * c.ranks;
    return lookup(o.efficiency.all_to_all, ranks <= per_server  ? 1
                                           : d.tp >= per_server ? kMulti
                                                                : ranks / per_server);
  }
  return 1;
}

/// Efficiency times bus bandwidth, in the unit that SimAI takes for GiB/s.
float effective_bandwidth(const Collective& c, const GroupDegrees& d, const AnalyticOptions& o) {
  if (const auto measured = o.measured.find(c.group, c.op)) {
    return gigabytes_per_second(*measured);
  }
  const Shape shape = shape_of(c, d, o);
  if (shape.nodes * shape.ranks_per_node == 1) {  // a group of several, rounded down to one
    return efficiency(c, d, o, false) * std::numeric_limits<float>::infinity();
  }
  if (shape.nics_per_node < 1) {  // SimAI's error code, which it divides by
    return efficiency(c, d, o, false) * -1;
  }
  const GroupPlacement<float> real{static_cast<float>(shape.nodes),
                                   static_cast<float>(shape.ranks_per_node),
                                   static_cast<float>(shape.nics_per_node)};
  const BusBandwidth<float> bus = bus_bandwidth(c.op, real, gigabytes_per_second(o.nvlink_rate()),
                                                gigabytes_per_second(o.nic_rate()));
  return efficiency(c, d, o, bus.nvlink_limited) * bus.rate;
}

}  // namespace

Time simai_collective_time(const Collective& c, const GroupDegrees& degrees,
                           const AnalyticOptions& options) {
  if (!is_simai_op(c.op)) {
    return Time();
  }
  if (c.bytes.count() > 1 && c.bytes.count() < kSmallLimit) {
    return small_message_time(c.ranks);
  }
  const bool known = c.group == GroupKind::kTp || c.group == GroupKind::kEp ||
                     c.group == GroupKind::kDp || c.group == GroupKind::kDpEp;
  if (!known || c.ranks <= 1) {
    return Time();
  }
  const double bandwidth = effective_bandwidth(c, degrees, options);
  const double n = static_cast<double>(c.ranks);
  double ns = static_cast<double>(c.bytes.count()) / kGiB / bandwidth * 1e9;
  if (c.op == CommType::kAllReduce) {
    ns = ns * 2;
  }
  ns = ns * (n - 1) / n;
  constexpr double kMaxNs = 9e15;
  if (!(std::abs(ns) < kMaxNs)) {
    throw_overflow("time");
  }
  return Time::ns(static_cast<std::int64_t>(ns));
}

}  // namespace lockstep
