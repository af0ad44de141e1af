#include "simulator/network/flow/turn_port.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

void TurnPort::start(std::int32_t transfer, const LegLoad& load, Time now) {
  if (senders_.empty()) {
    packet_ = load.packet;
    busy_ = now;
    turn_ = 0;
  } else {
    serve_until(now);
  }
  senders_.push_back({transfer, load.packets, load.last});
}

/// The sender whose turn it is begins with its next packet.
void TurnPort::serve() {
  turn_ = turn_ < senders_.size() ? turn_ : 0;
  Sender& sender = senders_[turn_++];
  busy_ += sender.left == 1 ? sender.last : packet_;
  --sender.left;
}

/// All packets that begin before now: whole rounds while nobody comes to a last packet, then one by
/// one.
void TurnPort::serve_until(Time now) {
  if (busy_ >= now) {
    return;
  }
  const std::int64_t least = std::ranges::min(senders_, {}, &Sender::left).left;
  const Time round = packet_ * std::ssize(senders_);
  const std::int64_t rounds = std::min(least - 1, (now - busy_).count_ps() / round.count_ps());
  if (rounds > 0) {
    busy_ += round * rounds;
    for (Sender& sender : senders_) {
      sender.left -= rounds;
    }
  }
  while (busy_ < now) {
    serve();
  }
}

/// That is the first in turn of those with the fewest packets.
Time TurnPort::first_end() const {
  const std::size_t count = senders_.size();
  const std::size_t turn = turn_ < count ? turn_ : 0;
  std::size_t first = turn;
  std::size_t before = 0;
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t place = turn + i < count ? turn + i : turn + i - count;
    if (senders_[place].left < senders_[first].left) {
      first = place;
      before = i;
    }
  }
  const Sender& sender = senders_[first];
  if (sender.left == 0) {
    return busy_;  // its last packet is leaving
  }
  const std::int64_t packets =
      (sender.left - 1) * static_cast<std::int64_t>(count) + static_cast<std::int64_t>(before);
  return busy_ + packet_ * packets + sender.last;
}

std::int32_t TurnPort::end_first(Time now) {
  serve_until(now);
  const auto gone = std::ranges::find(senders_, std::int64_t{0}, &Sender::left);
  LOCKSTEP_CHECK(gone != senders_.end() && busy_ == now, "a last packet has left");
  const std::int32_t transfer = gone->transfer;
  const auto place = static_cast<std::size_t>(gone - senders_.begin());
  senders_.erase(gone);
  turn_ -= place < turn_ ? 1 : 0;
  return transfer;
}

void TurnPort::stretch(double factor, Time now) {
  if (senders_.empty()) {
    return;
  }
  serve_until(now);
  const auto stretched = [factor](Time time) {
    return std::max(Time::ps(1), Time::seconds(time.seconds() * factor));
  };
  packet_ = stretched(packet_);
  for (Sender& sender : senders_) {
    sender.last = stretched(sender.last);
  }
}

}  // namespace lockstep
