#include "simulator/collectives/tune.h"

#include <algorithm>
#include <bit>

#include "simulator/collectives/choose.h"
#include "simulator/collectives/rings.h"
#include "simulator/collectives/trees.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSlicedChunk = 128 << 10;
constexpr Bytes kSmallSum(64 << 10);
constexpr Bytes kServerSum(2 << 20);  // from there on NVLS adds, where there is one

/// Channels that differ from each other: a communicator's others repeat them.
std::int32_t distinct_channels(const CollectiveAlgorithm& algorithm,
                               const CollectiveRequest& request, const GroupShape& shape) {
  return algorithm.name == "tree" ? tree_channels(request, shape) : channel_count(request, shape);
}

std::int32_t slices_of(const CollectiveRequest& request, const GroupShape& shape) {
  const std::int64_t chunk = request.bytes.count() / shape.ranks / channel_count(request, shape);
  return request.protocol == Protocol::kSimple && chunk > kSlicedChunk ? 2 : 1;
}

}  // namespace

TunedRequest tune(CollectiveRequest request, const GroupShape& shape, const NcclFabric& fabric,
                  NcclWishes wishes, const CollectiveAlgorithm* named, bool own) {
  request.mesh = fabric.nvlink > Bandwidth() && !fabric.nvswitch;
  request.nvswitches = fabric.nvswitches;
  request.arch = fabric.arch;
  if (named != nullptr) {
    wishes.algorithm = nccl_algorithm_named(named->name);
  }
  if (own || (named != nullptr && !wishes.algorithm)) {
    wishes.algorithm = NcclAlgorithm::kPointToPoint;
    wishes.protocol = wishes.protocol.value_or(Protocol::kSimple);
  }
  const NcclChoice choice =
      nccl_choice(request.op, request.bytes, nccl_group(shape), fabric, wishes);
  TunedRequest tuned;
  if (!own) {
    tuned.algorithm =
        named != nullptr
            ? named
            : &algorithm_named(our_name(choice.algorithm, request.op, shape.ranks), request.op);
  }
  request.protocol = choice.protocol;
  request.hop_latency = choice.hops;
  if (!own && choice.algorithm != NcclAlgorithm::kPointToPoint) {
    tuned.channels = choice.channels;
    const std::int32_t distinct = distinct_channels(*tuned.algorithm, request, shape);
    if (request.channels == 0 && tuned.channels < distinct) {
      request.channels = tuned.channels;
      tuned.fewer_channels = choice.channels_of_all >= distinct;
    }
  }
  request.slices = slices_of(request, shape);
  tuned.request = std::move(request);
  return tuned;
}

void use_all_ports(TunedRequest& tuned, const GroupShape& shape, std::int32_t ports) {
  CollectiveRequest& request = tuned.request;
  if (ports < 2 || tuned.channels == 0 || request.channels > 0 || nccl_group(shape).servers < 2) {
    return;
  }
  const std::int32_t distinct = distinct_channels(*tuned.algorithm, request, shape);
  request.channels = std::max(distinct, std::min(tuned.channels, distinct * ports));
  request.slices = slices_of(request, shape);
}

void keep_ranks_alike(TunedRequest& tuned, const GroupShape& shape) {
  CollectiveRequest& request = tuned.request;
  const std::string_view name = tuned.algorithm->name;
  const NcclGroup group = nccl_group(shape);
  const bool even = group.servers > 1 && group.servers * group.fewest == group.ranks;
  if (request.op == CommType::kAllReduce && request.bytes <= kSmallSum && name == "tree") {
    if (even) {
      tuned.algorithm = &algorithm_named("circulant", CommType::kAllReduce);
    } else if (std::has_single_bit(static_cast<std::uint32_t>(shape.ranks))) {
      tuned.algorithm = &algorithm_named("recursive-halving-doubling", CommType::kAllReduce);
    }
  }
  if (tuned.fewer_channels && name == "ring" && even) {
    request.channels = 0;  // as many as suit the group
    tuned.fewer_channels = false;
  }
}

void exchange_within_server(TunedRequest& tuned, const GroupShape& shape, const NcclFabric& fabric,
                            std::int32_t gpus_per_server) {
  CollectiveRequest& request = tuned.request;
  const std::string_view name = tuned.algorithm->name;
  if (!fabric.nvswitch || shape.ranks < 3 || nccl_group(shape).servers > 1 ||
      !request.hop_latency || !request.sizes.empty()) {
    return;
  }
  if (request.op == CommType::kAllReduce) {
    if (request.bytes >= kServerSum || (name != "ring" && name != "tree")) {
      return;
    }
    request.hop_latency->local = request.hop_latency->local * (shape.ranks - 1);
  } else {
    const Bytes slice(request.bytes.count() / shape.ranks / request.slices);
    if (name != "ring" || shape.ranks < gpus_per_server || request.slices < 2 ||
        transfer_time(slice, fabric.nvlink) < request.hop_latency->local) {
      return;
    }
  }
  tuned.algorithm = &algorithm_named("hierarchical", request.op);
  request.channels = 0;
  request.slices = 1;
  tuned.fewer_channels = false;
}

}  // namespace lockstep
