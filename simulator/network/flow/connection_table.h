#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace lockstep {

/// One number for each (source, destination, channel) that occurs: a hash table with open
/// addressing, 16 bytes an entry, at most two thirds full. Expected O(1).
class ConnectionTable {
 public:
  /// The number, 0 at first. The reference holds until the next call.
  std::uint32_t& operator()(NodeId source, NodeId destination, std::int32_t channel);

 private:
  struct Entry {
    std::int32_t source = -1, destination = -1, channel = 0;
    std::uint32_t value = 0;
  };
  Entry& slot_of(std::int32_t source, std::int32_t destination, std::int32_t channel);
  void grow();

  std::vector<Entry> entries_;
  std::size_t used_ = 0;
};

}  // namespace lockstep
