#include "planner/job/collective_bound.h"

#include <algorithm>

#include "simulator/collectives/tune.h"

namespace lockstep {
namespace {

/// Below this the replay may take another algorithm than NCCL for a sum.
constexpr Bytes kSmallSum(64 << 10);

/// What NCCL's own reduction in an NVSwitch reaches of the links is below 1; the bound does not
/// count on it.
double over(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

}  // namespace

CollectiveBound::CollectiveBound(const Topology& topology, const Speeds& speeds)
    : CollectiveBound(topology, topology.gpus(), speeds) {}

CollectiveBound::CollectiveBound(const Topology& topology, const std::vector<NodeId>& gpus,
                                 const Speeds& speeds)
    : shapes_(topology, gpus), speeds_(speeds) {}

double CollectiveBound::least_s(const RankLayout& layout, RankGroup kind, CommType comm,
                                Bytes bytes, std::int64_t replicas) {
  if (bytes == Bytes(0)) {
    return 0;
  }
  const std::vector<PlacedShape>& shapes = shapes_.of(layout, kind, replicas);
  double least = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto [found, is_new] = known_.try_emplace({&shapes[i], comm, bytes});
    if (is_new) {
      found->second = of_shape(shapes[i], comm, bytes);
    }
    least = i == 0 ? found->second : std::min(least, found->second);
  }
  return least;
}

double CollectiveBound::least_s(std::span<const PlacedShape> shapes, CommType comm,
                                Bytes bytes) const {
  if (bytes == Bytes(0) || shapes.empty()) {
    return 0;
  }
  double least = of_shape(shapes.front(), comm, bytes);
  for (const PlacedShape& shape : shapes.subspan(1)) {
    least = std::min(least, of_shape(shape, comm, bytes));
  }
  return least;
}

double CollectiveBound::of_shape(const PlacedShape& placed, CommType comm, Bytes bytes) const {
  if (comm != CommType::kSendRecv) {
    return of_fabric(placed, placed.shape.fabric, comm, bytes);
  }
  double least = of_fabric(placed, placed.pairs.front(), comm, bytes);
  for (const NcclFabric& fabric : std::span(placed.pairs).subspan(1)) {
    least = std::min(least, of_fabric(placed, fabric, comm, bytes));
  }
  return least;
}

double CollectiveBound::of_fabric(const PlacedShape& placed, const NcclFabric& fabric,
                                  CommType comm, Bytes bytes) const {
  const bool send = comm == CommType::kSendRecv;
  const bool local = send ? placed.local_pair : placed.servers == 1;
  const GroupShape pair{2, {0, local ? 0 : 1}};
  CollectiveRequest request;
  request.op = comm;
  request.bytes = bytes;
  const TunedRequest tuned = tune(std::move(request), send ? pair : placed.shape, fabric);
  const HopLatency hop = tuned.request.hop_latency.value_or(HopLatency{});
  const WireRatio ratio = wire_ratio(tuned.request.protocol);
  const double wire = static_cast<double>(bytes.count()) * ratio.wire / ratio.data;
  const double n = placed.shape.ranks, k = placed.servers, g = placed.most;
  const double nvlink = placed.nvlink_Bps * speeds_.nvlink, nic = placed.nic_Bps * speeds_.nic;
  const double nics = placed.server_nic_Bps * speeds_.nic;
  const double launch = hop.launch.seconds(), inside = hop.local.seconds(),
               between = hop.network.seconds();
  const double one_hop = local ? inside : std::min(inside, between);
  const bool sums = comm == CommType::kAllReduce;
  double carried = 0, latency = one_hop;
  const std::string_view name = tuned.algorithm->name;
  if (sums && bytes <= kSmallSum) {
    return launch * speeds_.latency;
  }
  if (name == "ring") {
    const double steps = sums ? 2 * (n - 1) : n - 1;
    const double across = (sums ? 2 : 1) * (k - 1);
    carried = local ? over(steps / n * wire, nvlink)
                    : over(std::max(0.0, steps - (g - 1)) / n * wire, nics);
    latency = (steps - across) * inside + across * between;
  } else if (name == "nvls") {
    carried = local ? over(sums ? wire : (n - 1) / n * wire, nvlink) : 0;
  } else if (name == "tree" || name == "nvls-tree") {
    carried = local ? over(wire, nvlink) : over(wire, nics);
  } else if (name == "pairwise" || name == "direct") {
    carried = std::max(over((n - g) / n * wire, nic), local ? over((g - 1) / n * wire, nvlink) : 0);
  } else if (name == "send") {
    carried = over(wire, local ? std::max(nvlink, nic) : nic);
  } else if (name == "pat") {
    carried = over((n - 1) / n * wire, nics);
  }
  return std::max(carried + (launch + one_hop) * speeds_.latency,
                  (launch + latency) * speeds_.latency);
}

}  // namespace lockstep
