#include "simulator/network/flow/connection_table.h"

#include <algorithm>

namespace lockstep {
namespace {

/// The finaliser of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

std::uint64_t bits(std::int32_t value) { return static_cast<std::uint32_t>(value); }

}  // namespace

std::uint32_t& ConnectionTable::operator()(NodeId source, NodeId destination,
                                           std::int32_t channel) {
  if (used_ * 3 >= entries_.size() * 2) {
    grow();
  }
  Entry& entry = slot_of(source.value, destination.value, channel);
  if (entry.source < 0) {
    entry = {source.value, destination.value, channel, 0};
    ++used_;
  }
  return entry.value;
}

ConnectionTable::Entry& ConnectionTable::slot_of(std::int32_t source, std::int32_t destination,
                                                 std::int32_t channel) {
  const std::size_t mask = entries_.size() - 1;
  std::size_t i = mix(mix(bits(source) << 32 | bits(destination)) + bits(channel)) & mask;
  while (entries_[i].source >= 0 &&
         (entries_[i].source != source || entries_[i].destination != destination ||
          entries_[i].channel != channel)) {
    i = (i + 1) & mask;
  }
  return entries_[i];
}

void ConnectionTable::grow() {
  std::vector<Entry> old(std::max<std::size_t>(16, entries_.size() * 2));
  old.swap(entries_);
  for (const Entry& entry : old) {
    if (entry.source >= 0) {
      slot_of(entry.source, entry.destination, entry.channel) = entry;
    }
  }
}

}  // namespace lockstep
