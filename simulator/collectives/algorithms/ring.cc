#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce, CommType::kAllGather, CommType::kReduceScatter};

/// Patarasuk and Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.
///
/// In n-1 steps place j of a ring passes on, and the next place adds, the piece that ends at place
/// j - 1 - step (reduce-scatter); in n-1 more steps place j passes on the finished piece of place
/// j - step (all-gather). A transfer waits for the one that brought its piece: the previous step
/// from the previous place. Piece p of channel c is chunk p * channels + c.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule;
  schedule.op = request.op;
  schedule.ranks = shape.ranks;
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const std::int64_t n = shape.ranks;
  const std::int64_t channels = channel_count(request, shape);
  const std::int64_t reducing = request.op == CommType::kAllGather ? 0 : n - 1;
  const std::int64_t gathering = request.op == CommType::kReduceScatter ? 0 : n - 1;
  schedule.reserve(static_cast<double>((reducing + gathering) * n) * static_cast<double>(channels));
  schedule.chunks = static_cast<std::int32_t>(n * channels);
  const auto rings = make_rings(request, shape);

  for (std::int64_t step = 0; step < reducing + gathering; ++step) {
    const bool reduce = step < reducing;
    const std::int64_t back = reduce ? step + 1 : step - reducing;  // how far the piece's end lies
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::vector<std::int32_t>& ring = rings[static_cast<std::size_t>(c)];
      const auto rank_at = [&](std::int64_t place) {
        return ring[static_cast<std::size_t>((place + n) % n)];
      };
      for (std::int64_t place = 0; place < n; ++place) {
        const std::int64_t chunk = rank_at(place - back) * channels + c;
        Transfer transfer;
        transfer.source = rank_at(place);
        transfer.destination = rank_at(place + 1);
        transfer.channel = static_cast<std::int32_t>(c);
        transfer.chunk = static_cast<std::int32_t>(chunk);
        transfer.bytes = part_size(request.bytes, n * channels, chunk, request.flavour);
        transfer.reduce = reduce;
        const auto bringer =
            static_cast<std::int32_t>(((step - 1) * channels + c) * n + (place + n - 1) % n);
        schedule.add(transfer, {&bringer, step == 0 ? std::size_t{0} : std::size_t{1}});
      }
    }
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kRingCollectiveAlgorithm = {
    "ring", "pieces travel round a ring per channel, one step after the other", kOps, build};

}  // namespace lockstep
