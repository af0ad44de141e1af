#include "simulator/collectives/transfer_list.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/index.h"

namespace lockstep {
namespace {

/// Runs the slots as far as they go, by work list: the order in which transfers become possible.
class Writer {
 public:
  explicit Writer(const Schedule& schedule)
      : schedule_(schedule),
        ids_(schedule.slots.size()),
        waiters_(schedule.slots.size()),
        to_relay_(schedule.slots.size()),
        from_relay_(schedule.slots.size()) {
    for (std::size_t s = 0; s < schedule.slots.size(); ++s) {
      for (const SlotWait& wait : schedule.waits(s)) {
        if (wait.slot < 0 || at(wait.slot) >= schedule.slots.size()) {
          throw Error(
              fmt::format("slot {} waits for slot {} of {}", s, wait.slot, schedule.slots.size()));
        }
        waiters_[at(wait.slot)].push_back(static_cast<std::int32_t>(s));
      }
    }
    for (const std::int32_t s : schedule.relays) {
      from_relay_[at(s)] = true;
      to_relay_[at(schedule.waits(at(s)).front().slot)] = true;
    }
    list_.dependency_begin.push_back(0);
    list_.chunk_begin.push_back(0);
  }

  TransferList write() {
    std::vector<std::int32_t> now, next;
    std::vector<bool> queued(schedule_.slots.size(), true);
    for (std::size_t s = 0; s < schedule_.slots.size(); ++s) {
      now.push_back(static_cast<std::int32_t>(s));
    }
    while (!now.empty()) {
      next.clear();
      for (const std::int32_t slot : now) {
        queued[at(slot)] = false;
      }
      for (const std::int32_t slot : now) {
        if (!advance(slot)) {
          continue;
        }
        const auto wake = [&](std::int32_t other) {
          if (!queued[at(other)]) {
            queued[at(other)] = true;
            next.push_back(other);
          }
        };
        wake(slot);
        for (const std::int32_t waiter : waiters_[at(slot)]) {
          wake(waiter);
        }
      }
      now.swap(next);
    }
    for (std::size_t s = 0; s < schedule_.slots.size(); ++s) {
      if (ids_[s].size() < at(schedule_.slots[s].count)) {
        throw Error(fmt::format("slot {} (place {} to place {}) can never send transfer {}", s,
                                schedule_.slots[s].source, schedule_.slots[s].destination,
                                ids_[s].size()))
            .hint("look for slots that wait for each other in a circle");
      }
    }
    return std::move(list_);
  }

 private:
  /// Appends the slot's next transfer if it has all it needs.
  bool advance(std::int32_t s) {
    const Slot& slot = schedule_.slots[at(s)];
    const auto k = static_cast<std::int32_t>(ids_[at(s)].size());
    if (k >= slot.count) {
      return false;
    }
    for (const SlotWait& wait : schedule_.waits(at(s))) {
      if (std::ssize(ids_[at(wait.slot)]) < wait.needed(k, schedule_.slots[at(wait.slot)].count)) {
        return false;
      }
    }
    if (k > 0 && !schedule_.separate_flows) {
      list_.dependency.push_back(ids_[at(s)].back());
    }
    for (const SlotWait& wait : schedule_.waits(at(s))) {
      const std::int32_t needed = wait.needed(k, schedule_.slots[at(wait.slot)].count);
      if (needed > 0) {
        list_.dependency.push_back(ids_[at(wait.slot)][at(needed - 1)]);
      }
    }
    for (std::int32_t i = 0; i < slot.run; ++i) {
      list_.chunk.push_back(schedule_.chunk(slot, k, i));
    }
    ids_[at(s)].push_back(static_cast<std::int32_t>(list_.transfers.size()));
    list_.transfers.push_back({slot.source, slot.destination, slot.channel,
                               schedule_.bytes(slot, k), k < slot.reduces, to_relay_[at(s)],
                               from_relay_[at(s)]});
    list_.dependency_begin.push_back(static_cast<std::int32_t>(list_.dependency.size()));
    list_.chunk_begin.push_back(static_cast<std::int32_t>(list_.chunk.size()));
    return true;
  }

  const Schedule& schedule_;
  std::vector<std::vector<std::int32_t>> ids_;  // per slot: its transfers so far
  std::vector<std::vector<std::int32_t>> waiters_;
  std::vector<bool> to_relay_, from_relay_;  // per slot
  TransferList list_;
};

}  // namespace

TransferList write_out(const Schedule& schedule) { return Writer(schedule).write(); }

}  // namespace lockstep
