#include "simulator/collectives/schedule.h"

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

std::int32_t Schedule::chunk(const Slot& slot, std::int32_t k, std::int32_t i) const {
  const std::int64_t position = slot.start + std::int64_t{k} * slot.step + i;
  const auto wrap = [&](std::int64_t size) { return (position % size + size) % size; };
  if (slot.cycle < 0) {
    return static_cast<std::int32_t>(wrap(chunks));
  }
  const auto cycle = static_cast<std::size_t>(slot.cycle);
  const std::int32_t begin = cycle_begin[cycle];
  return cycle_chunks[static_cast<std::size_t>(begin + wrap(cycle_begin[cycle + 1] - begin))];
}

Bytes Schedule::bytes(const Slot& slot, std::int32_t k) const {
  if (chunk_sizes.empty()) {
    return chunk_bytes * slot.run;
  }
  Bytes total;
  for (std::int32_t i = 0; i < slot.run; ++i) {
    total += chunk_sizes[static_cast<std::size_t>(chunk(slot, k, i))];
  }
  return total;
}

std::int64_t Schedule::transfer_count() const {
  std::int64_t total = 0;
  for (const Slot& slot : slots) {
    total += slot.count;
  }
  return total;
}

void Schedule::reserve(double slot_count) {
  if (slot_count > static_cast<double>(kMaxSlots)) {
    throw Error(fmt::format("{} on {} ranks would be {:.3g} connections, too many to simulate",
                            name_of(op), ranks, slot_count))
        .expected(fmt::format("at most {}", kMaxSlots))
        .hint("use fewer channels or the analytic engine");
  }
  const auto count = static_cast<std::size_t>(slot_count);
  slots.reserve(count);
  wait.reserve(count);
  wait_begin.reserve(count + 1);
}

std::int32_t Schedule::add(const Slot& slot, std::span<const SlotWait> waits_for) {
  slots.push_back(slot);
  wait.insert(wait.end(), waits_for.begin(), waits_for.end());
  wait_begin.push_back(static_cast<std::int32_t>(wait.size()));
  return static_cast<std::int32_t>(slots.size()) - 1;
}

std::int32_t Schedule::add_cycle(std::span<const std::int32_t> chunk_list) {
  cycle_chunks.insert(cycle_chunks.end(), chunk_list.begin(), chunk_list.end());
  cycle_begin.push_back(static_cast<std::int32_t>(cycle_chunks.size()));
  return static_cast<std::int32_t>(cycle_begin.size()) - 2;
}

std::size_t Schedule::memory_bytes() const {
  return slots.capacity() * sizeof(Slot) + wait.capacity() * sizeof(SlotWait) +
         chunk_sizes.capacity() * sizeof(Bytes) +
         (wait_begin.capacity() + cycle_begin.capacity() + cycle_chunks.capacity()) *
             sizeof(std::int32_t);
}

}  // namespace lockstep
