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
  find_first();
}

/// The sender whose turn it is begins with its next packet.
void TurnPort::serve() {
  turn_ = turn_ < senders_.size() ? turn_ : 0;
  Sender& sender = senders_[turn_++];
  busy_ += sender.left == 1 ? sender.last : packet_;
  --sender.left;
}

/// All packets that begin before now: whole rounds while nobody comes to a last packet, what is
/// left of a round, and where somebody may come to a last packet one by one.
void TurnPort::serve_until(Time now) {
  if (busy_ >= now) {
    return;
  }
  std::int64_t least = senders_.front().left;
  for (const Sender& sender : senders_) {
    least = std::min(least, sender.left);
  }
  const std::int64_t count = std::ssize(senders_);
  const std::int64_t ended = (now - busy_).count_ps() / packet_.count_ps();
  const std::int64_t begun = ended + (busy_ + packet_ * ended < now ? 1 : 0);
  const std::int64_t rounds = std::min(least - 1, ended / count);
  busy_ += packet_ * (rounds * count);
  for (Sender& sender : senders_) {
    sender.left -= rounds;
  }
  if (rounds < least - 1) {
    serve_full(begun - rounds * count);
  }
  while (busy_ < now) {
    serve();
  }
}

/// So many more packets, less than a round, all of them full.
void TurnPort::serve_full(std::int64_t packets) {
  busy_ += packet_ * packets;
  for (; packets > 0; --packets) {
    turn_ = turn_ < senders_.size() ? turn_ : 0;
    --senders_[turn_++].left;
  }
}

/// The first in turn of those with the fewest packets.
void TurnPort::find_first() {
  const std::size_t count = senders_.size();
  const std::size_t turn = turn_ < count ? turn_ : 0;
  std::size_t place = turn;
  std::int64_t least = senders_[turn].left;
  const auto look = [&](std::size_t i) {
    const std::int64_t left = senders_[i].left;
    place = left < least ? i : place;
    least = std::min(left, least);
  };
  for (std::size_t i = turn + 1; i < count; ++i) {
    look(i);
  }
  for (std::size_t i = 0; i < turn; ++i) {
    look(i);
  }
  first_ = {place, place >= turn ? place - turn : place + count - turn};
}

Time TurnPort::first_end() const {
  const Sender& sender = senders_[first_.place];
  if (sender.left == 0) {
    return busy_;  // its last packet is leaving
  }
  const std::int64_t packets =
      (sender.left - 1) * std::ssize(senders_) + static_cast<std::int64_t>(first_.before);
  return busy_ + packet_ * packets + sender.last;
}

std::int32_t TurnPort::end_first(Time now) {
  const First gone = first_;
  LOCKSTEP_CHECK(first_end() == now, "a last packet has left");
  const std::int32_t transfer = senders_[gone.place].transfer;
  const std::int64_t left = senders_[gone.place].left;
  if (left > 0) {  // whole rounds, and of the last one those before it and itself
    for (Sender& sender : senders_) {
      sender.left -= left - 1;
    }
    const std::size_t turn = turn_ < senders_.size() ? turn_ : 0;
    for (std::size_t i = 0; i < gone.before; ++i) {
      --senders_[turn + i < senders_.size() ? turn + i : turn + i - senders_.size()].left;
    }
    turn_ = gone.place + 1;
    busy_ = now;
  }
  senders_.erase(senders_.begin() + static_cast<std::ptrdiff_t>(gone.place));
  turn_ -= gone.place < turn_ ? 1 : 0;
  if (!senders_.empty()) {
    find_first();
  }
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
  find_first();
}

}  // namespace lockstep
