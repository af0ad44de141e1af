#include "simulator/collectives/tune.h"

#include <algorithm>
#include <bit>

#include "simulator/collectives/choose.h"
#include "simulator/collectives/rings.h"
#include "simulator/collectives/trees.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSlicedChunk = 128 << 10;

/// Channels that differ from each other: a communicator's others repeat them.
std::int32_t distinct_channels(const CollectiveAlgorithm& algorithm,
                               const CollectiveRequest& request, const GroupShape& shape) {
  return algorithm.name == "tree" ? tree_channels(request, shape) : channel_count(request, shape);
}

}  // namespace

TunedRequest tune(CollectiveRequest request, const GroupShape& shape, const NcclFabric& fabric,
                  NcclWishes wishes, const CollectiveAlgorithm* named, bool own) {
  request.mesh = fabric.nvlink > Bandwidth() && !fabric.nvswitch;
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
  const std::int64_t chunk = request.bytes.count() / shape.ranks / channel_count(request, shape);
  request.slices = request.protocol == Protocol::kSimple && chunk > kSlicedChunk ? 2 : 1;
  tuned.request = std::move(request);
  return tuned;
}

void keep_ranks_alike(TunedRequest& tuned, const GroupShape& shape) {
  constexpr Bytes kSmall(64 << 10);
  CollectiveRequest& request = tuned.request;
  const std::string_view name = tuned.algorithm->name;
  const NcclGroup group = nccl_group(shape);
  const bool even = group.servers > 1 && group.servers * group.fewest == group.ranks;
  if (request.op == CommType::kAllReduce && request.bytes <= kSmall && name == "tree") {
    if (std::has_single_bit(static_cast<std::uint32_t>(shape.ranks))) {
      tuned.algorithm = &algorithm_named("recursive-halving-doubling", CommType::kAllReduce);
    } else if (even) {
      tuned.algorithm = &algorithm_named("circulant", CommType::kAllReduce);
    }
  }
  if (tuned.fewer_channels && name == "ring" && even) {
    request.channels = 0;  // as many as suit the group
    tuned.fewer_channels = false;
  }
}

}  // namespace lockstep
