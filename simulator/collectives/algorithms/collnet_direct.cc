#include "simulator/collectives/building.h"
#include "simulator/collectives/nvswitch.h"
#include "simulator/collectives/rails.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce};

/// NCCL's CollNetDirect (SHARP: Graham et al., 2016): each part of the tensor has a head in every
/// server, one a rail. All local ranks send their part to the head at once, which adds; the rail's
/// switch adds what the heads send it and sends each the sum, and they pass it on to all local
/// ranks. Pieces of at most 512 KiB follow each other.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const Rails rails(shape);
  Slot slot;
  slot.count = piece_count(part_size(request.bytes, rails.count, CollectiveFlavour::kDefault),
                           piece_limit(request.protocol));
  slot.step = rails.count;
  schedule.chunks = rails.count * slot.count;
  schedule.chunk_bytes = part_size(request.bytes, schedule.chunks, request.flavour);
  schedule.reserve(2.0 * rails.count * shape.ranks);
  for (std::int32_t rail = 0; rail < rails.count; ++rail) {
    slot.channel = rail;
    slot.start = rail;
    std::vector<std::vector<SlotWait>> ready(rails.servers.size());
    for (std::size_t server = 0; server < rails.servers.size(); ++server) {
      slot.destination = rails.servers[server][static_cast<std::size_t>(rail)];
      slot.reduces = slot.count;
      for (const std::int32_t rank : rails.servers[server]) {
        slot.source = rank;
        if (rank != slot.destination) {
          ready[server].push_back({schedule.add(slot, {}), 0});
        }
      }
    }
    if (rails.size() > 1) {
      const std::int32_t leaf = add_switch(schedule, rails.head(0, rail), 1);
      std::vector<SlotWait> added;
      slot.destination = leaf;
      for (std::size_t server = 0; server < rails.servers.size(); ++server) {
        slot.source = rails.servers[server][static_cast<std::size_t>(rail)];
        added.push_back({schedule.add(slot, ready[server]), 0});
      }
      slot.source = leaf;
      slot.reduces = 0;
      for (std::size_t server = 0; server < rails.servers.size(); ++server) {
        slot.destination = rails.servers[server][static_cast<std::size_t>(rail)];
        ready[server] = {{schedule.add(slot, added), 0}};
      }
    }
    slot.reduces = 0;
    for (std::size_t server = 0; server < rails.servers.size(); ++server) {
      slot.source = rails.servers[server][static_cast<std::size_t>(rail)];
      for (const std::int32_t rank : rails.servers[server]) {
        slot.destination = rank;
        if (rank != slot.source) {
          schedule.add(slot, ready[server]);
        }
      }
    }
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kCollnetDirectCollectiveAlgorithm = {
    "collnet-direct", "heads add in the servers, leaf switches between them", kOps, build};

}  // namespace lockstep
