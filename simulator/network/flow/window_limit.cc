#include "simulator/network/flow/window_limit.h"

#include <algorithm>
#include <deque>

namespace lockstep {
namespace {

/// Packets one by one: when each may begin.
class Sender {
 public:
  explicit Sender(const WindowLimit& limit, std::int64_t window)
      : limit_(limit), window_(window), small_(limit.is_small()) {}

  /// The start of the next packet.
  Time next() {
    take_acks();
    while (sent_ - acked_ >= window_) {
      free_ = std::max(free_, acks_.front().when);
      take_acks();
    }
    const Time start = free_;
    free_ += limit_.packet;
    ++sent_;
    ++unconfirmed_;
    const bool asks = small_ && sent_ - acked_ >= window_;
    if (asks || unconfirmed_ == limit_.ack_interval) {
      acks_.push_back({start + limit_.round_trip, sent_});
      unconfirmed_ = 0;
    }
    return start;
  }

 private:
  struct Ack {
    Time when;
    std::int64_t sent;
  };

  void take_acks() {
    while (!acks_.empty() && acks_.front().when <= free_) {
      acked_ = acks_.front().sent;
      acks_.pop_front();
    }
  }

  const WindowLimit& limit_;
  std::int64_t window_;
  bool small_;
  Time free_;
  std::int64_t sent_ = 0, acked_ = 0, unconfirmed_ = 0;
  std::deque<Ack> acks_;
};

}  // namespace

bool WindowLimit::limits(std::int64_t packets) const {
  const std::int64_t w = window_packets();
  // The first packet that may wait is the one after a window, for the first ACK of all.
  return packets > w && packet * (w - std::min(w, ack_interval) + 1) < round_trip;
}

WindowLimit::Last WindowLimit::last_packet(std::int64_t packets) const {
  if (!limits(packets)) {
    return {packet * (packets - 1), Time()};
  }
  // Starts repeat with a period of `step` packets once a few windows are through.
  const std::int64_t w = window_packets();
  const std::int64_t step = is_small() ? w : w - w % ack_interval;
  const std::int64_t settled = 4 * w + ack_interval;
  const std::int64_t skipped = std::max<std::int64_t>(0, (packets - settled) / step - 1);
  Sender sender(*this, w);
  Time before, start, earlier;
  for (std::int64_t i = 0; i < packets - skipped * step; ++i) {
    before = start;
    start = sender.next();
    earlier = i + 1 == packets - (skipped + 1) * step ? start : earlier;
  }
  const Time wait = packets > 1 ? start - before - packet : Time();
  return {skipped > 0 ? start + (start - earlier) * skipped : start, wait};
}

Time WindowLimit::sender_time(std::int64_t packets, double part) const {
  const Last last = last_packet(packets);
  const auto of = [&](Time time, double share) { return Time::seconds(time.seconds() * share); };
  return last.start + of(packet, part) - std::min(of(pipeline, 1 - part), last.wait);
}

double WindowLimit::steady_rate() const {
  const std::int64_t w = window_packets();
  const std::int64_t step = is_small() ? w : w - w % ack_interval;
  const std::int64_t settled = 4 * w + ack_interval;
  const Time period = last_packet(settled + 2 * step).start - last_packet(settled + step).start;
  return static_cast<double>(step) / period.seconds();
}

}  // namespace lockstep
