#include "simulator/collectives/building.h"
#include "simulator/collectives/nvswitch.h"
#include "simulator/collectives/rails.h"
#include "simulator/collectives/rings.h"
#include "simulator/collectives/trees.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce};

/// NCCL's NVLSTree: NVSwitches add and multicast within the servers (nvswitch.h); between them the
/// double binary tree over the heads of one rail, half of a head's part in each tree.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const Rails rails(shape);
  const std::int32_t servers = rails.size();
  const std::int32_t trees = servers > 1 ? 2 : 1, parts = rails.count * trees;
  const std::int32_t channels =
      request.channels > 0 ? request.channels : nvls_channels(request.arch, servers);
  const Bytes most(servers >= 4 ? 64 * 1024 : 128 * 1024);
  const Bytes piece = nvls_piece(request.bytes, channels, rails.count, most) / trees;
  const Bytes part = part_size(request.bytes, parts, CollectiveFlavour::kDefault);
  Slot slot;
  slot.count = piece_count(part, piece);
  schedule.nvswitch_percent = nvls_percent(request.arch);
  schedule.chunks = parts * slot.count;
  schedule.chunk_bytes = part_size(request.bytes, schedule.chunks, request.flavour);
  schedule.reserve(static_cast<double>(parts) * 2 * (shape.ranks + servers));
  std::vector<std::vector<std::int32_t>> nvswitches;
  for (const std::vector<std::int32_t>& server : rails.servers) {
    nvswitches.push_back(add_nvswitches(schedule, server, request.nvswitches, rails.count));
  }
  const auto nvswitch = [&](std::size_t server, std::int32_t of) {
    const std::vector<std::int32_t>& places = nvswitches[server];
    return places[static_cast<std::size_t>(of / trees) % places.size()];
  };
  for (std::int32_t p = 0; p < parts; ++p) {
    slot.channel = p;
    slot.start = p;
    slot.step = parts;
    std::vector<std::int32_t> heads;
    std::vector<std::vector<SlotWait>> ready;
    for (std::int32_t server = 0; server < servers; ++server) {
      const auto s = static_cast<std::size_t>(server);
      heads.push_back(rails.head(server, p / trees));
      ready.push_back(
          reduce_in_nvswitch(schedule, rails.servers[s], heads[s], nvswitch(s, p), slot));
    }
    const auto parents = p % trees == 0 ? binary_tree(servers) : complementary_tree(servers);
    const TreeSlots tree = add_tree(schedule, parents, heads, slot, true, true, ready);
    const auto children = children_of(parents);
    for (std::size_t s = 0; s < parents.size(); ++s) {
      std::vector<SlotWait> complete = ready[s];  // what makes the head's result complete
      if (tree.down[s] >= 0) {
        complete = {{tree.down[s], 0}};
      } else {
        for (const std::int32_t child : children[s]) {
          complete.push_back({tree.up[static_cast<std::size_t>(child)], 0});
        }
      }
      multicast_in_nvswitch(schedule, rails.servers[s], heads[s], nvswitch(s, p), slot, complete);
    }
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kNvlsTreeCollectiveAlgorithm = {
    "nvls-tree", "NVSwitches add and multicast in the servers, trees over the rails between", kOps,
    build};

}  // namespace lockstep
