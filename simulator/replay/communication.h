#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "simulator/network/network_engine.h"

namespace lockstep {

/// The collectives under way in a replay: who has entered, which transfers may start, who has
/// finished. Entering and network events go in; transfers go to a network; finished ranks come out
/// through a callback that the implementation was given.
class Communication {
 public:
  virtual ~Communication() = default;

  /// A rank reaches communication `op` of its program.
  virtual void enter(std::int32_t rank, std::int32_t op, Time now) = 0;
  virtual void handle(const NetworkEvent& event, Time now) = 0;

  virtual std::int64_t transfers() const = 0;
  /// The members of a rank's collective that have not entered it yet.
  virtual std::vector<std::int32_t> missing(std::int32_t rank, std::int32_t op) const = 0;
};

}  // namespace lockstep
