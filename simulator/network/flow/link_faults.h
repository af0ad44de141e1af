#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/units.h"
#include "simulator/network/network_engine.h"

namespace lockstep {

/// Which links are down when, and which of them connections know of, for any number of faults that
/// may overlap. O(log faults) a change, 1 B a link and 16 B a link that ever fails.
class LinkFaults {
 public:
  explicit LinkFaults(std::size_t links) : avoided_(links) {}

  /// PRECONDITION: from < until, rerouting >= 0. What should have happened before `now` happens
  /// then.
  void add(const LinkFault& fault, Time now);
  /// When something changes next; Time::max() where nothing is to come.
  Time next() const { return changes_.empty() ? Time::max() : changes_.begin()->first; }
  /// Makes the changes of next(). Returns whether connections have learnt of something.
  bool step();

  bool is_down(LinkId link) const { return down_.contains(link.value); }
  /// PRECONDITION: is_down(link).
  Time down_since(LinkId link) const { return down_.at(link.value).since; }
  /// One entry a link, 1: connections know that it is down.
  std::span<const char> avoided() const { return avoided_; }

 private:
  struct Change {
    std::int32_t link;
    std::int8_t by;  ///< faults of the link: 1 more, 1 less
    bool known;      ///< to connections; else the link itself
  };
  struct Down {
    std::int32_t faults = 0;
    Time since;
  };

  std::multimap<Time, Change> changes_;  // at one time in order of add()
  std::map<std::int32_t, Down> down_;    // links with a fault
  std::map<std::int32_t, std::int32_t> known_;
  std::vector<char> avoided_;
};

}  // namespace lockstep
