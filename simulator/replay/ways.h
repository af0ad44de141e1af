#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "simulator/network/flow/connection_table.h"

namespace lockstep {

/// From where to where a connection goes, and on which channel.
struct Way {
  NodeId source, destination;
  std::int32_t channel = 0;
  friend auto operator<=>(const Way&, const Way&) = default;
};

/// The ways of many connections, each kept once. Expected O(1) a connection.
class Ways {
 public:
  /// Notes the way of one more connection.
  void add(const Way& way);
  /// One more connection that takes the way of an earlier one.
  void add_like(std::size_t connection) { of_.push_back(of_[connection]); }

  /// Each once, in the order in which they first came.
  const std::vector<Way>& each() const { return each_; }
  /// Of each connection: the index of its way.
  const std::vector<std::int32_t>& of() const { return of_; }

 private:
  std::vector<Way> each_;
  std::vector<std::int32_t> of_;
  ConnectionTable number_;  // index + 1
};

}  // namespace lockstep
