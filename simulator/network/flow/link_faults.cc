#include "simulator/network/flow/link_faults.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

void LinkFaults::add(const LinkFault& fault, Time now) {
  LOCKSTEP_CHECK(fault.from < fault.until && fault.rerouting >= Time(), "a fault has a duration");
  const auto later = [&](Time when) {
    const bool never = when == Time::max() || fault.rerouting > Time::max() - when;
    return never ? Time::max() : when + fault.rerouting;
  };
  const auto note = [&](Time when, Change change) {
    if (when < Time::max()) {
      changes_.emplace(std::max(when, now), change);
    }
  };
  for (const LinkId link : fault.links) {
    note(fault.from, {link.value, 1, false});
    note(fault.until, {link.value, -1, false});
    note(later(fault.from), {link.value, 1, true});
    note(later(fault.until), {link.value, -1, true});
  }
}

bool LinkFaults::step() {
  const Time when = next();
  bool learnt = false;
  while (next() == when && when < Time::max()) {
    const Change change = changes_.begin()->second;
    changes_.erase(changes_.begin());
    if (change.known) {
      learnt = true;
      avoided_[static_cast<std::size_t>(change.link)] = (known_[change.link] += change.by) > 0;
      continue;
    }
    Down& down = down_[change.link];
    down.since = down.faults == 0 ? when : down.since;
    if ((down.faults += change.by) == 0) {
      down_.erase(change.link);
    }
  }
  return learnt;
}

}  // namespace lockstep
