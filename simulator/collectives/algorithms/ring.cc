#include <algorithm>

#include "simulator/collectives/building.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce, CommType::kAllGather, CommType::kReduceScatter};

/// Patarasuk and Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.
///
/// In n-1 steps place j of a ring passes on, and the next place adds, the chunk that ends at place
/// j - 1 - step (reduce-scatter); in n-1 more steps place j passes on the finished chunk of place
/// j - step (all-gather), which is the same walk backwards over the ring carried on. Each step
/// waits for the one that brought its chunk: the previous step from the previous place. The chunk
/// of rank r on channel c is r * channels + c.
///
/// SimAI starts a new flow for every step, whether or not the one before has left, so there each is
/// a slot of its own.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const std::int32_t n = shape.ranks;
  const std::int32_t channels = channel_count(request, shape);
  const std::int32_t reducing = request.op == CommType::kAllGather ? 0 : n - 1;
  const std::int32_t steps = reducing + (request.op == CommType::kReduceScatter ? 0 : n - 1);
  const bool step_by_step = request.flavour == CollectiveFlavour::kSimai;
  schedule.reserve(static_cast<double>(n) * channels * (step_by_step ? steps : 1));
  schedule.chunks = n * channels;
  schedule.chunk_bytes = part_size(request.bytes, std::int64_t{n} * channels, request.flavour);
  const auto rings = make_rings(request, shape);
  std::vector<std::int32_t> cycle(static_cast<std::size_t>(n));
  for (std::int32_t c = 0; c < channels; ++c) {
    std::ranges::transform(rings[static_cast<std::size_t>(c)], cycle.begin(),
                           [&](std::int32_t rank) { return rank * channels + c; });
    schedule.add_cycle(cycle);
  }

  for (std::int32_t step = 0; step < (step_by_step ? steps : 1); ++step) {
    for (std::int32_t c = 0; c < channels; ++c) {
      const std::vector<std::int32_t>& ring = rings[static_cast<std::size_t>(c)];
      for (std::int32_t place = 0; place < n; ++place) {
        Slot slot;
        slot.source = ring[static_cast<std::size_t>(place)];
        slot.destination = ring[static_cast<std::size_t>((place + 1) % n)];
        slot.channel = c;
        slot.cycle = c;
        slot.start = place - step - (reducing > 0 ? 1 : 0);
        slot.step = -1;
        slot.count = step_by_step ? 1 : steps;
        slot.reduces = step_by_step ? (step < reducing ? 1 : 0) : reducing;
        const std::int32_t before = c * n + (place + n - 1) % n;
        if (!step_by_step) {
          schedule.add(slot, {{{before, 1}}});
        } else if (step == 0) {
          schedule.add(slot, {});
        } else {
          schedule.add(slot, {{{(step - 1) * n * channels + before, 0}}});
        }
      }
    }
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kRingCollectiveAlgorithm = {
    "ring", "pieces travel round a ring per channel, one step after the other", kOps, build};

}  // namespace lockstep
