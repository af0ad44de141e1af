#include "simulator/collectives/nvswitch.h"

#include <algorithm>
#include <utility>

namespace lockstep {

std::int32_t nvls_percent(GpuArch arch) { return arch == GpuArch::kBlackwell ? 74 : 85; }

std::int32_t nvls_channels(GpuArch arch, std::int32_t servers) {
  return arch != GpuArch::kBlackwell ? 16 : servers > 1 ? 32 : 24;
}

Bytes nvls_piece(Bytes tensor, std::int32_t channels, std::int32_t heads, Bytes most) {
  Bytes chunk = std::min(Bytes(128 << 10), most);
  const std::int64_t at_once = std::int64_t{channels} * heads;
  for (const auto& [times, smaller] : {std::pair{64, 64 * 1024}, {8, 32 * 1024}, {2, 16 * 1024}}) {
    if (tensor < chunk * at_once * times && Bytes(smaller) < chunk) {
      chunk = Bytes(smaller);
    }
  }
  return chunk * channels;
}

std::int32_t add_switch(Schedule& schedule, std::int32_t near, std::int32_t level,
                        std::int32_t index) {
  schedule.switches.push_back({near, level, index});
  return schedule.places() - 1;
}

std::vector<std::int32_t> add_nvswitches(Schedule& schedule, const std::vector<std::int32_t>& ranks,
                                         std::int32_t count, std::int32_t parts) {
  if (ranks.size() < 2) {
    return {-1};
  }
  std::vector<std::int32_t> places;
  for (std::int32_t index = 0; index < std::clamp(count, 1, parts); ++index) {
    places.push_back(add_switch(schedule, ranks.front(), 0, index));
  }
  return places;
}

std::vector<SlotWait> reduce_in_nvswitch(Schedule& schedule, const std::vector<std::int32_t>& ranks,
                                         std::int32_t head, std::int32_t nvswitch,
                                         const Slot& pieces) {
  if (ranks.size() < 2) {
    return {};
  }
  Slot slot = pieces;
  slot.destination = nvswitch;
  slot.reduces = slot.count;
  std::vector<SlotWait> added;
  for (const std::int32_t rank : ranks) {
    slot.source = rank;
    added.push_back({schedule.add(slot, {}), 0});
  }
  slot.source = nvswitch;
  slot.destination = head;
  slot.reduces = 0;
  return {{schedule.add(slot, added), 0}};
}

void multicast_in_nvswitch(Schedule& schedule, const std::vector<std::int32_t>& ranks,
                           std::int32_t head, std::int32_t nvswitch, const Slot& pieces,
                           const std::vector<SlotWait>& ready) {
  if (ranks.size() < 2) {
    return;
  }
  Slot slot = pieces;
  slot.source = head;
  slot.destination = nvswitch;
  slot.reduces = 0;
  const SlotWait stored{schedule.add(slot, ready), 0};
  slot.source = nvswitch;
  for (const std::int32_t rank : ranks) {
    if (rank != head) {
      slot.destination = rank;
      schedule.add(slot, {&stored, 1});
    }
  }
}

}  // namespace lockstep
