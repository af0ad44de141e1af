#include <algorithm>

#include "simulator/collectives/building.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kBroadcast, CommType::kReduce};
constexpr std::int32_t kMaxPieces = 64;  // per channel

/// A pipeline along each channel's ring, opened at the root: a broadcast starts there, a reduce
/// ends there. Every rank passes a channel's pieces on one after the other, each as soon as it has
/// it. Pieces have at most piece_limit() bytes, unless that were more than 64 a channel; piece p of
/// channel c is chunk p * channels + c.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const std::int32_t channels = channel_count(request, shape);
  const Bytes part = part_size(request.bytes, channels, CollectiveFlavour::kDefault);
  const std::int32_t pieces =
      std::min(piece_count(part, piece_limit(request.protocol)), kMaxPieces);
  const std::int32_t hops = shape.ranks - 1;
  const bool reduce = request.op == CommType::kReduce;
  schedule.reserve(static_cast<double>(channels) * hops);
  schedule.chunks = pieces * channels;
  schedule.chunk_bytes = part_size(request.bytes, schedule.chunks, request.flavour);
  std::int32_t channel = 0;
  for (auto& ring : make_rings(request, shape)) {
    std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), request.root), ring.end());
    if (reduce) {
      std::rotate(ring.begin(), ring.begin() + 1, ring.end());
    }
    for (std::int32_t hop = 0; hop < hops; ++hop) {
      Slot slot;
      slot.source = ring[static_cast<std::size_t>(hop)];
      slot.destination = ring[static_cast<std::size_t>(hop) + 1];
      slot.channel = channel;
      slot.count = pieces;
      slot.reduces = reduce ? pieces : 0;
      slot.start = channel;
      slot.step = channels;
      const SlotWait before{channel * hops + hop - 1, 0};
      schedule.add(slot, {&before, hop > 0 ? std::size_t{1} : std::size_t{0}});
    }
    ++channel;
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kChainCollectiveAlgorithm = {
    "chain", "pieces travel down a chain per channel as in a pipeline", kOps, build};

}  // namespace lockstep
