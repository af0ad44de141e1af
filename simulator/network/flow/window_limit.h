#pragma once

#include <cstdint>

#include "base/units.h"

namespace lockstep {

/// What a window makes of a transfer that has its way to itself: how long its sender takes from the
/// first bit to the last.
///
/// The sender may begin a packet while fewer than `window` bytes of data are on their way or not
/// yet confirmed. The receiver confirms every `ack_interval` packets, the last one, and one that
/// fills a window of less than two intervals (that window could not be confirmed otherwise).
///
///     tau  = time of a full packet on the slowest hop
///     A    = from the start of a full packet to its confirmation at the sender: propagation there
///            and back, a packet at each hop there, an ACK at each hop back
///     w    = ceil(window / payload) packets, k = ack_interval
///
/// In the steady state, for w >= 2 k, k floor(w / k) packets go in max of their own time and
/// A + (k - 1 - w mod k) tau: the window opens k packets at a time. With k = 1 that is the
/// bandwidth-delay law w / A. The first window goes at full rate, so n packets take less than n / w
/// round trips; last_packet() follows the packets until they repeat.
///
/// Holds for a transfer whose queue pair is idle before it, on ways without queues. On a busy way
/// the round trip grows by the queue, and the window bounds the queue instead: a link that is full
/// anyway is shared as if there were no window, as long as the windows of those that share it
/// stand in proportion to their round trips. Checked by tests/differential/window_packet_test.cc.
/// Source: first principles; k = 1 is in every text on sliding windows (Bertsekas, Gallager: Data
/// Networks, 2nd ed., section 6.2).
struct WindowLimit {
  Bytes window;                   ///< at least 1
  Bytes payload;                  ///< of a full packet, at least 1
  std::int64_t ack_interval = 1;  ///< packets, at least 1
  Time packet;                    ///< tau
  Time round_trip;                ///< A, at least tau
  Time pipeline;                  ///< what store and forward of a full packet adds

  /// Whether a transfer of so many packets is slower than without a window. O(1).
  bool limits(std::int64_t packets) const;
  /// When the last of n packets begins, after the first one did, and how long the window has held
  /// it up since the one before had left. All but the last one are full. O(w + k).
  struct Last {
    Time start, wait;
  };
  Last last_packet(std::int64_t packets) const;
  /// From the first bit of a transfer to the last, less what its last packet gains at the hops
  /// behind when it is short and comes alone. `part` is that packet's size over a full one's.
  Time sender_time(std::int64_t packets, double part) const;
  /// Packets per second when there is no end of them. O(w + k).
  double steady_rate() const;
  /// Whether a packet that fills the window has to ask for its ACK.
  bool is_small() const { return window < payload * ack_interval * 2; }

 private:
  std::int64_t window_packets() const {
    return (window.count() + payload.count() - 1) / payload.count();
  }
};

}  // namespace lockstep
