#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace lockstep {

/// A point-to-point transfer to carry out.
struct FlowSpec {
  NodeId source, destination;
  Bytes bytes;
  Time start;                ///< not before the engine's now()
  std::int32_t channel = 0;  ///< the collective's channel, for rail affinity
  std::uint64_t tag = 0;     ///< comes back in the events
};

struct NetworkEvent {
  enum class Kind : std::uint8_t {
    kSent,      ///< the last bit left the source
    kDelivered  ///< the destination has it all (or, if so configured, the source has the last ACK)
  };
  Time when;
  std::uint64_t tag = 0;
  Kind kind = Kind::kDelivered;
};

/// What one port carried from time 0 to now.
struct PortUse {
  Bytes bytes;  ///< wire bytes, headers included
  Time busy;    ///< bytes at the port's full rate
};

/// Moves bytes over a Topology and owns the network's clock; the replay owns everything else and
/// drives the engine:
///
///     engine.start(flow);                                // any number, at or after now()
///     Time now = engine.advance(next_own_event, events); // stops early at the first events
///
/// Deterministic: same calls, same events in the same order (ties by order of start()).
class NetworkEngine {
 public:
  virtual ~NetworkEngine() = default;

  virtual Time now() const = 0;
  /// ERRORS: Error when there is no route.
  virtual void start(const FlowSpec& flow) = 0;
  /// Moves the clock to `limit`, or to the first moment at which something is sent or delivered if
  /// that comes earlier; appends everything that happens at that moment. Returns now().
  /// With limit Time::max() and nothing under way the clock stays and no event is appended.
  virtual Time advance(Time limit, std::vector<NetworkEvent>& events) = 0;
  /// One entry a port (2 * links).
  virtual std::vector<PortUse> port_use() const = 0;
};

}  // namespace lockstep
