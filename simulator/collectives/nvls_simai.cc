#include "simulator/collectives/nvls_simai.h"

#include <vector>

#include "simulator/collectives/building.h"
#include "simulator/collectives/nvswitch.h"
#include "simulator/collectives/rings.h"

namespace lockstep {

Schedule simai_nvls(const CollectiveRequest& request, const GroupShape& shape) {
  constexpr std::int32_t kParts = 4;
  Schedule schedule = empty_schedule(request, shape);
  schedule.chunks = kParts;
  schedule.chunk_bytes = part_size(request.bytes, kParts, CollectiveFlavour::kSimai);
  Slot slot;
  slot.count = kParts;
  slot.step = 1;
  const std::int32_t nvswitch = add_switch(schedule, 0, 0);
  std::vector<SlotWait> added;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    slot.source = rank;
    slot.destination = nvswitch;
    slot.reduces = kParts;
    const SlotWait part_before{static_cast<std::int32_t>(schedule.slots.size()), 1};
    added.push_back({schedule.add(slot, {&part_before, 1}), 0});
  }
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    slot.source = nvswitch;
    slot.destination = rank;
    slot.reduces = 0;
    schedule.add(slot, added);
  }
  return schedule;
}

}  // namespace lockstep
