#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"
#include "simulator/network/network_engine.h"

namespace lockstep {

/// A transfer that waits for a link that is down. Where a switch sends or receives (`peer` -1), the
/// rank is the other end, or one near a switch between switches.
struct StuckMessage {
  std::int32_t rank = 0, op = 0;
  std::int32_t peer = -1;          ///< rank that receives
  std::pair<NodeId, NodeId> ends;  ///< of the link
  Time since;
  friend bool operator==(const StuckMessage&, const StuckMessage&) = default;
};

/// The collectives under way in a replay and the network that carries them: who has entered, which
/// transfers may start, who has finished. Ranks that enter go in; those that finish come out
/// through a callback that the implementation was given.
class Communication {
 public:
  virtual ~Communication() = default;

  /// A rank reaches communication `op` of its program.
  virtual void enter(std::int32_t rank, std::int32_t op, Time now) = 0;
  /// Moves the network's clock to `limit`, or to the first moment at which something happens if
  /// that comes earlier, and returns it. With limit Time::max() and nothing under way the clock
  /// stays. What happens before and lets no rank finish may be dealt with on the way.
  virtual Time advance(Time limit) = 0;
  /// Whether something happened at the moment that advance() came to.
  virtual bool happened() const = 0;
  /// Deals with that: who has finished is told.
  virtual void dispatch(Time now) = 0;
  /// From now on a port has this share of its bandwidth.
  virtual void scale_capacity(PortId port, double share) = 0;

  /// The transfers under way that cannot go on as links are.
  virtual std::vector<StuckMessage> stuck() const { return {}; }

  virtual std::int64_t transfers() const = 0;
  /// Moments that were dealt with on the way, so far.
  virtual std::int64_t passed() const { return 0; }
  /// The members of a rank's collective that have not entered it yet.
  virtual std::vector<std::int32_t> missing(std::int32_t rank, std::int32_t op) const = 0;
};

}  // namespace lockstep
