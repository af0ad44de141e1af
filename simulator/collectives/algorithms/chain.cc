#include <algorithm>
#include <array>

#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kBroadcast, CommType::kReduce};
constexpr std::int64_t kPieceBytes = 512 * 1024;  // NCCL's step of the Simple protocol
constexpr std::int64_t kMaxPieces = 64;           // per channel

/// A pipeline along each channel's ring, opened at the root: a broadcast starts there, a reduce
/// ends there. Every rank passes a channel's pieces on one after the other, each as soon as it has
/// it. Pieces are of about 512 KiB, at most 64 a channel.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule;
  schedule.op = request.op;
  schedule.ranks = shape.ranks;
  schedule.root = request.root;
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const std::int64_t channels = channel_count(request, shape);
  const std::int64_t pieces =
      std::clamp(request.bytes.count() / channels / kPieceBytes, std::int64_t{1}, kMaxPieces);
  const std::int64_t hops = shape.ranks - 1;
  const bool reduce = request.op == CommType::kReduce;
  schedule.reserve(static_cast<double>(pieces * channels) * static_cast<double>(hops));
  schedule.chunks = static_cast<std::int32_t>(pieces * channels);
  auto rings = make_rings(request, shape);
  for (auto& ring : rings) {
    std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), request.root), ring.end());
    if (reduce) {
      std::rotate(ring.begin(), ring.begin() + 1, ring.end());
    }
  }

  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::vector<std::int32_t>& ring = rings[static_cast<std::size_t>(c)];
      for (std::int64_t hop = 0; hop < hops; ++hop) {
        const std::int64_t chunk = piece * channels + c;
        Transfer transfer;
        transfer.source = ring[static_cast<std::size_t>(hop)];
        transfer.destination = ring[static_cast<std::size_t>(hop + 1)];
        transfer.channel = static_cast<std::int32_t>(c);
        transfer.chunk = static_cast<std::int32_t>(chunk);
        transfer.bytes = part_size(request.bytes, pieces * channels, chunk, request.flavour);
        transfer.reduce = reduce;
        std::array<std::int32_t, 2> waits_for{};
        std::size_t count = 0;
        const std::int64_t self = chunk * hops + hop;
        if (piece > 0) {  // the rank's previous piece has left
          waits_for[count++] = static_cast<std::int32_t>(self - channels * hops);
        }
        if (hop > 0) {  // this piece has come
          waits_for[count++] = static_cast<std::int32_t>(self - 1);
        }
        schedule.add(transfer, std::span(waits_for).first(count));
      }
    }
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kChainCollectiveAlgorithm = {
    "chain", "pieces travel down a chain per channel as in a pipeline", kOps, build};

}  // namespace lockstep
