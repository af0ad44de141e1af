#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace lockstep {

/// An index into one kind of table; ids of different kinds do not mix. -1 is "none".
template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int32_t v) : value(v) {}
  constexpr explicit Id(std::size_t v) : value(static_cast<std::int32_t>(v)) {}

  constexpr bool valid() const { return value >= 0; }
  /// The id as a subscript. PRECONDITION: valid().
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using RankId = Id<struct RankTag>;    ///< one GPU of a job, counted from 0
using NodeId = Id<struct NodeTag>;    ///< one node of a Topology: GPU, NVSwitch or switch
using LinkId = Id<struct LinkTag>;    ///< one full-duplex link of a Topology
using GroupId = Id<struct GroupTag>;  ///< one communicator: a list of ranks

/// One direction of a link: 2 * link for a to b, 2 * link + 1 for b to a.
using PortId = Id<struct PortTag>;

}  // namespace lockstep

template <class Tag>
struct std::hash<lockstep::Id<Tag>> {
  std::size_t operator()(lockstep::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>()(id.value);
  }
};
