#include "simulator/collectives/schedule.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/large_pages.h"

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

Bytes Schedule::data_bytes(const Slot& slot, std::int32_t k) const {
  if (chunk_sizes.empty()) {
    return chunk_bytes * slot.run;
  }
  Bytes total;
  for (std::int32_t i = 0; i < slot.run; ++i) {
    total += chunk_sizes[static_cast<std::size_t>(chunk(slot, k, i))];
  }
  return total;
}

Bytes Schedule::bytes(const Slot& slot, std::int32_t k) const {
  const auto grown = [](std::int64_t bytes, std::int64_t by, std::int64_t of) {
    return by == of ? Bytes(bytes) : Bytes((Bytes(bytes) * by).count() / of + (bytes % of != 0));
  };
  const WireRatio ratio = wire_ratio(protocol);
  const Bytes wire = grown(data_bytes(slot, k).count(), ratio.wire, ratio.data);
  const auto in_nvswitch = [&](std::int32_t place) {
    return place >= ranks && switches[static_cast<std::size_t>(place - ranks)].level == 0;
  };
  if (nvswitch_percent == 100 || (!in_nvswitch(slot.source) && !in_nvswitch(slot.destination))) {
    return wire;
  }
  return grown(wire.count(), 100, nvswitch_percent);
}

Time Schedule::start_latency(const Slot& slot, Time otherwise) const {
  if (!hop_latency) {
    return otherwise;
  }
  const auto server_of = [&](std::int32_t place) {  // -1: a switch outside all servers
    if (place < ranks) {
      return server[static_cast<std::size_t>(place)];
    }
    const SwitchPlace& at = switches[static_cast<std::size_t>(place - ranks)];
    return at.level > 0 ? -1 : server[static_cast<std::size_t>(at.near)];
  };
  const std::int32_t from = server_of(slot.source);
  return from >= 0 && from == server_of(slot.destination) ? hop_latency->local
                                                          : hop_latency->network;
}

std::int64_t Schedule::transfer_count() const {
  std::int64_t total = 0;
  for (const Slot& slot : slots) {
    total += slot.count;
  }
  return total;
}

void Schedule::reserve(double slot_count, double connections_of_slot) {
  const double connections = slot_count * connections_of_slot;
  if (connections > static_cast<double>(kMaxSlots)) {
    throw Error(fmt::format("{} on {} ranks would be {:.3g} connections, too many to simulate",
                            name_of(op), ranks, connections))
        .expected(fmt::format("at most {}", kMaxSlots))
        .hint("use fewer channels or the analytic engine");
  }
  const auto count = static_cast<std::size_t>(slot_count);
  reserve_large(slots, count);
  reserve_large(wait, count);
  reserve_large(wait_begin, count + 1);
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
         chunk_sizes.capacity() * sizeof(Bytes) + switches.capacity() * sizeof(SwitchPlace) +
         (wait_begin.capacity() + cycle_begin.capacity() + cycle_chunks.capacity() +
          server.capacity() + relays.capacity()) *
             sizeof(std::int32_t);
}

}  // namespace lockstep
