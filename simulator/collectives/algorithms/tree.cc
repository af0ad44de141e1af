#include <numeric>

#include "simulator/collectives/building.h"
#include "simulator/collectives/rings.h"
#include "simulator/collectives/trees.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce, CommType::kBroadcast, CommType::kReduce};

/// NCCL's double binary tree: chains in the servers, two complementary binary trees between them,
/// each with half of the channels (Sanders, Speck, Träff 2009; tree_parents()). An all-reduce adds
/// up to the root and copies back down; broadcast and reduce do one of the two, from or to their
/// root. Pieces have at most piece_limit() bytes and follow each other through the buffers; piece p
/// of channel c is chunk p * channels + c.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const bool up = request.op != CommType::kBroadcast, down = request.op != CommType::kReduce;
  const std::int32_t channels = tree_channels(request, shape);
  const std::int32_t pieces =
      piece_count(part_size(request.bytes, channels, CollectiveFlavour::kDefault),
                  piece_limit(request.protocol));
  schedule.reserve(static_cast<double>(channels) * (shape.ranks - 1) * (up && down ? 2 : 1));
  schedule.chunks = pieces * channels;
  schedule.chunk_bytes = part_size(request.bytes, schedule.chunks, request.flavour);
  std::vector<std::int32_t> places(static_cast<std::size_t>(shape.ranks));
  std::iota(places.begin(), places.end(), 0);
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    const auto parents = tree_parents(shape, channel, channels, up && down ? -1 : request.root);
    Slot slot;
    slot.channel = channel;
    slot.count = pieces;
    slot.start = channel;
    slot.step = channels;
    add_tree(schedule, parents, places, slot, up, down, {});
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kTreeCollectiveAlgorithm = {
    "tree", "NCCL's double binary tree, pieces in a pipeline", kOps, build};

}  // namespace lockstep
