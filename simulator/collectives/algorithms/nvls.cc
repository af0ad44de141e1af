#include "simulator/collectives/building.h"
#include "simulator/collectives/nvls_simai.h"
#include "simulator/collectives/nvswitch.h"
#include "simulator/collectives/rails.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce, CommType::kAllGather, CommType::kReduceScatter};

/// Flavour simai, whose transfers are flows of their own: each of a slot waits for the one before,
/// as in simai_nvls(), or else they would all leave at once.
Schedule one_by_one(const Schedule& schedule) {
  Schedule result = schedule;
  result.slots.clear();
  result.wait.clear();
  result.wait_begin = {0};
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    const auto of = schedule.waits(i);
    std::vector<SlotWait> waits(of.begin(), of.end());
    waits.push_back({static_cast<std::int32_t>(i), 1});
    result.add(schedule.slots[i], waits);
  }
  return result;
}

/// NCCL's NVLS: the NVSwitch adds and multicasts (nvswitch.h), so that a GPU sends its data once
/// and gets the result once. Between servers, as in NCCL, only together with in-network reduction:
/// the heads' sums are added in the switch that their rail hangs on.
class Build {
 public:
  Build(const CollectiveRequest& request, const GroupShape& shape)
      : rails_(shape), server_(shape.server), schedule_(empty_schedule(request, shape)) {
    schedule_.nvswitch_percent = nvls_percent(request.arch);
    heads_ = request.op == CommType::kAllReduce ? rails_.count : shape.ranks;
    const Bytes part = part_size(request.bytes, heads_, CollectiveFlavour::kDefault);
    const std::int32_t channels =
        request.channels > 0 ? request.channels : nvls_channels(request.arch, rails_.size());
    pieces_.count = piece_count(
        part, nvls_piece(request.bytes, channels, rails_.count, Bytes(std::int64_t{128} * 1024)));
    schedule_.chunks = heads_ * pieces_.count;
    schedule_.chunk_bytes = part_size(request.bytes, schedule_.chunks, request.flavour);
    schedule_.reserve(static_cast<double>(heads_) * 2 * shape.ranks);
    for (std::int32_t server = 0; server < rails_.size(); ++server) {
      nvswitches_.push_back(add_nvswitches(schedule_, ranks(server), request.nvswitches, heads_));
    }
    for (std::int32_t rail = 0; rails_.size() > 1 && rail < rails_.count; ++rail) {
      leaf_.push_back(add_switch(schedule_, rails_.head(0, rail), 1));
    }
  }

  Schedule build() {
    const bool up = schedule_.op != CommType::kAllGather;
    const bool down = schedule_.op != CommType::kReduceScatter;
    for (std::int32_t part = 0; part < heads_; ++part) {
      Slot slot = pieces_;
      const bool shards = schedule_.op != CommType::kAllReduce;
      slot.channel = part;
      slot.start = shards ? part * slot.count : part;
      slot.step = shards ? 1 : heads_;
      const std::int32_t owner = shards ? part : -1;
      std::vector<std::vector<SlotWait>> ready(static_cast<std::size_t>(rails_.size()));
      for (std::int32_t server = 0; up && server < rails_.size(); ++server) {
        ready[static_cast<std::size_t>(server)] = reduce_in_nvswitch(
            schedule_, ranks(server), head(server, part, owner), nvswitch(server, part), slot);
      }
      if (rails_.size() > 1) {
        in_leaf(slot, part, owner, up, down, ready);
      }
      for (std::int32_t server = 0; down && server < rails_.size(); ++server) {
        multicast_in_nvswitch(schedule_, ranks(server), head(server, part, owner),
                              nvswitch(server, part), slot,
                              ready[static_cast<std::size_t>(server)]);
      }
    }
    return std::move(schedule_);
  }

 private:
  const std::vector<std::int32_t>& ranks(std::int32_t server) const {
    return rails_.servers[static_cast<std::size_t>(server)];
  }
  std::int32_t nvswitch(std::int32_t server, std::int32_t part) const {
    const auto& places = nvswitches_[static_cast<std::size_t>(server)];
    return places[static_cast<std::size_t>(part) % places.size()];
  }
  std::int32_t rail_of(std::int32_t part, std::int32_t owner) const {
    return owner < 0 ? part : rails_.rail[static_cast<std::size_t>(owner)];
  }
  /// Who stands for a server: the owner of the shard in its own, the rail's head elsewhere.
  std::int32_t head(std::int32_t server, std::int32_t part, std::int32_t owner) const {
    return owner >= 0 && server_[static_cast<std::size_t>(owner)] == server
               ? owner
               : rails_.head(server, rail_of(part, owner));
  }
  /// Heads (only the owner, if nothing is reduced) send to the rail's switch, which sends to all
  /// heads (only the owner, if nothing is multicast). `ready` is what each head's data waits for.
  void in_leaf(Slot slot, std::int32_t part, std::int32_t owner, bool up, bool down,
               std::vector<std::vector<SlotWait>>& ready) {
    const std::int32_t leaf = leaf_[static_cast<std::size_t>(rail_of(part, owner))];
    slot.destination = leaf;
    slot.reduces = up ? slot.count : 0;
    std::vector<SlotWait> added;
    for (std::int32_t server = 0; server < rails_.size(); ++server) {
      slot.source = head(server, part, owner);
      if (up || slot.source == owner) {
        added.push_back({schedule_.add(slot, ready[static_cast<std::size_t>(server)]), 0});
      }
    }
    slot.source = leaf;
    slot.reduces = 0;
    for (std::int32_t server = 0; server < rails_.size(); ++server) {
      slot.destination = head(server, part, owner);
      const bool wanted = up && down ? true : (slot.destination == owner) == up;
      if (wanted) {
        ready[static_cast<std::size_t>(server)] = {{schedule_.add(slot, added), 0}};
      }
    }
  }

  Rails rails_;
  std::vector<std::int32_t> server_;
  Schedule schedule_;
  Slot pieces_;
  std::int32_t heads_ = 0;
  std::vector<std::vector<std::int32_t>> nvswitches_;  // places, of each server
  std::vector<std::int32_t> leaf_;                     // of each rail
};

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  require_even(request, "nvls");
  if (request.bytes == Bytes(0)) {
    return empty_schedule(request, shape);
  }
  const bool one_server = ranks_by_server(shape).size() == 1;
  if (request.flavour == CollectiveFlavour::kSimai && one_server &&
      request.op == CommType::kAllReduce) {
    return simai_nvls(request, shape);
  }
  Schedule schedule = Build(request, shape).build();
  return request.flavour == CollectiveFlavour::kSimai ? one_by_one(schedule) : schedule;
}

}  // namespace

extern const CollectiveAlgorithm kNvlsCollectiveAlgorithm = {
    "nvls", "NVSwitches add and multicast; between servers the leaf switches", kOps, build};

}  // namespace lockstep
