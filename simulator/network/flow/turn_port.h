#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// What a transfer has to send over a port.
struct LegLoad {
  std::int64_t packets = 1;  ///< the last one included
  Time packet;               ///< what a full one takes
  Time last;                 ///< what the last one takes
  Time whole() const { return packet * (packets - 1) + last; }
};

/// A port that serves its senders packet by packet, in turn, as the NICs of ns-3's RDMA hosts do:
/// in the order in which they came, from the one after the last that was served; a packet that is
/// leaving is not held up. Of a sender nothing matters but how many packets it has and how long the
/// last one takes, so that whole rounds go by in one step, and ends are those of the packets,
/// exactly.
///
///     A: 3 packets       |=======|       |=======|       |=======|  A ends after 5, half a packet
///     B: 3, half a       .   |   |=======|       |=======|       |=======|   before it would if
///     the
///        packet later        comes                                           two shared evenly
///
/// What sets turns apart from an even share: senders that come within one round of each other end
/// within a packet of each other, whatever lay between them; and as the last packets of messages
/// are short, they go on all but together. In a closed network of queues, as rings are, such
/// convoys last, and what travels in a convoy waits for itself at every port (docs/models.md).
///
/// All calls with times that do not go back. O(senders); no allocation once the array has grown.
class TurnPort {
 public:
  bool empty() const { return senders_.empty(); }
  /// PRECONDITION: packets >= 1, all of one full packet's time, which is not nothing.
  void start(std::int32_t transfer, const LegLoad& load, Time now);
  /// When the first will have sent all, if nobody comes. PRECONDITION: not empty.
  Time first_end() const;
  /// Drops that one and returns it. PRECONDITION: now is first_end().
  std::int32_t end_first(Time now);
  /// Packets that begin from now on take so many times as long.
  void stretch(double factor, Time now);

 private:
  struct Sender {
    std::int32_t transfer;
    std::int64_t left;  ///< packets that have not begun to leave
    Time last;
  };
  struct First {
    std::size_t place;   ///< in senders_
    std::size_t before;  ///< who come before it in a round
  };
  void find_first();
  void serve();
  void serve_full(std::int64_t packets);
  void serve_until(Time now);

  Time packet_;
  Time busy_;             // until then with what is leaving
  std::size_t turn_ = 0;  // who is next; the number of senders: who comes, else the first
  std::vector<Sender> senders_;
  First first_{};  // to end; where there are senders
};

}  // namespace lockstep
