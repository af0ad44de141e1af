#include "simulator/network/flow/fluid_network.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/network/flow/give_back.h"

namespace lockstep {
namespace {

constexpr double kPsPerSecond = 1e12;
/// A flow is done when it has less than this part of its bits left, which is the error of what is
/// kept about it: flows that are equal but for the last bit of a product end at one moment.
constexpr double kRounding = 1e-14;

}  // namespace

ConnectionId FluidNetwork::connect(std::span<const MaxMin::Term> terms) {
  const VariableId variable = rates_.add_variable(terms, MaxMin::kUnbounded, /*active=*/false);
  LOCKSTEP_CHECK(variable.index() == connections_.size(), "connections are variables");
  connections_.emplace_back();
  return ConnectionId(variable.value);
}

void FluidNetwork::set_limit(ConnectionId connection, RateLimit limit) {
  if (limits_.size() <= connection.index()) {
    if (limit == RateLimit{}) {
      return;
    }
    limits_.resize(std::max(connections_.size(), connection.index() + 1));
  }
  limits_[connection.index()] = limit;
}

/// The limit that its present flow has from now on.
void FluidNetwork::bound(std::int32_t id, double RateLimit::*kind) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= limits_.size() && law_ == nullptr) {
    return;
  }
  double rate = index < limits_.size() ? limits_[index].*kind : MaxMin::kUnbounded;
  if (law_ != nullptr) {
    caps_.resize(connections_.size(), MaxMin::kUnbounded);
    present_.resize(connections_.size(), MaxMin::kUnbounded);
    present_[index] = rate;
    rate = std::min(rate, caps_[index]);
  }
  rates_.set_bound(VariableId(id), rate);
}

void FluidNetwork::cap(ConnectionId connection, double rate) {
  caps_[connection.index()] = rate;
  rates_.set_bound(VariableId(connection.value), std::min(rate, present_[connection.index()]));
}

void FluidNetwork::add_term(ConnectionId connection, MaxMin::Term term) {
  rates_.add_term(VariableId(connection.value), term);
}

void FluidNetwork::reroute(ConnectionId connection, std::span<const MaxMin::Term> terms) {
  if (connections_[connection.index()].state != State::kDraining) {
    rates_.remove_variable(VariableId(connection.value));
    const VariableId again = rates_.add_variable(terms, MaxMin::kUnbounded, /*active=*/false);
    LOCKSTEP_CHECK(again.value == connection.value, "a variable's id is used again");
  }
}

void FluidNetwork::hold(ConnectionId id) {
  Connection& connection = connections_[id.index()];
  connection.held = true;
  if (connection.state != State::kDraining) {
    return;
  }
  connection.left_bits = left_bits(connection);
  connection.since = now_;
  connection.rate = 0;
  connection.end = connection.queued = Time::max();
  ++connection.version;  // whatever stands in finishes_ is void
  connection.state = State::kHeld;
  rates_.deactivate(VariableId(id.value));
  --draining_;
}

void FluidNetwork::let_go(ConnectionId id) {
  Connection& connection = connections_[id.index()];
  connection.held = false;
  if (connection.state == State::kHeld) {
    connection.state = State::kFuture;
    connection.end = now_;
    starts_.push(now_, id.value);
  }
}

void FluidNetwork::start(ConnectionId id, double bits, Time latency, Time when, std::uint64_t tag) {
  LOCKSTEP_CHECK(when >= now_, "a flow starts now or later");
  Connection& connection = connections_[id.index()];
  ++live_;
  if (connection.state == State::kIdle) {
    drain(connection, bits, latency, tag);
    if (when == now_ && bits > 0 && !connection.held) {
      begin(id.value);
    } else {
      connection.state = State::kFuture;
      connection.end = when;
      starts_.push(when, id.value);
    }
    return;
  }
  append(connection, {bits, latency, when, tag, -1});
}

void FluidNetwork::append(Connection& connection, const Post& what) {
  std::int32_t post = free_post_;
  if (post < 0) {
    post = static_cast<std::int32_t>(posts_.size());
    posts_.push_back(what);
  } else {
    free_post_ = posts_[static_cast<std::size_t>(post)].next;
    posts_[static_cast<std::size_t>(post)] = what;
  }
  (connection.first_post < 0 ? connection.first_post
                             : posts_[static_cast<std::size_t>(connection.last_post)].next) = post;
  connection.last_post = post;
}

Time FluidNetwork::advance(Time limit, std::vector<NetworkEvent>& events) {
  const std::size_t before = events.size();
  while (true) {
    update_rates();
    const Time next = next_stamp();
    if (next > limit || next == Time::max()) {
      if (limit < Time::max()) {
        now_ = std::max(now_, limit);
      } else if (draining_ > 0) {
        throw Error(fmt::format("{} transfers would end after the clock's 106 days", draining_))
            .hint("look for a size that is far too large or a bandwidth that is far too small");
      }
      return now_;
    }
    now_ = next;
    process_now(events);
    if (events.size() > before) {
      return now_;
    }
  }
}

void FluidNetwork::update_rates() {
  law_changed_.clear();
  solve_rates();
  if (law_ != nullptr && (!law_changed_.empty() || law_next_ <= now_)) {
    law_next_ = law_->adjust(*this, law_changed_);
    solve_rates();
  }
}

void FluidNetwork::solve_rates() {
  for (const VariableId id : rates_.solve()) {
    if (law_ != nullptr) {
      law_changed_.push_back(id);
    }
    Connection& connection = connections_[id.index()];
    if (connection.rate == rates_.rate(id)) {
      continue;  // adopted with it
    }
    connection.left_bits = left_bits(connection);
    connection.since = now_;
    connection.rate = rates_.rate(id);
    reschedule(id.value);
  }
  // Keeps the queue in proportion to the flows when rates rise often.
  constexpr std::size_t kSlack = 1024;
  if (finishes_.size() > 2 * draining_ + kSlack) {
    finishes_.remove_if([&](const Finish& entry) {
      return entry.version != connections_[static_cast<std::size_t>(entry.connection)].version;
    });
  }
}

double FluidNetwork::left_bits(const Connection& connection) const {
  const auto since = static_cast<double>((now_ - connection.since).count_ps());
  return std::max(0.0, connection.left_bits - connection.rate * since / kPsPerSecond);
}

/// A later end leaves the queued entry as it is: it is looked at again when its time comes.
void FluidNetwork::reschedule(std::int32_t id) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  const double bits = std::max(0.0, connection.left_bits - kRounding * connection.bits);
  const double whole = std::ceil(bits * kPsPerSecond / connection.rate);
  const auto room = static_cast<double>((Time::max() - now_).count_ps());
  connection.end = whole < room ? now_ + Time::ps(static_cast<std::int64_t>(whole)) : Time::max();
  if (connection.end < connection.queued) {
    connection.queued = connection.end;
    finishes_.push(connection.end, {id, ++connection.version});
  }
}

Time FluidNetwork::next_change() {
  update_rates();
  return next_stamp();
}

Time FluidNetwork::next_stamp() const {
  Time next = finishes_.empty() ? law_next_ : std::min(law_next_, finishes_.first());
  next = starts_.empty() ? next : std::min(next, starts_.first());
  return deliveries_.empty() ? next : std::min(next, deliveries_.first());
}

void FluidNetwork::process_now(std::vector<NetworkEvent>& events) {
  if (!finishes_.empty() && finishes_.first() == now_) {
    finishes_.pop(finishing_);
    if (finishing_.size() > events.capacity()) {
      events.reserve(events.size() + finishing_.size());
    }
    constexpr std::size_t kAhead = 8;  // entries, to have their memory when they come
    for (std::size_t i = 0; i < finishing_.size(); ++i) {
      if (i + kAhead < finishing_.size()) {
        const auto next = static_cast<std::size_t>(finishing_[i + kAhead].connection);
        __builtin_prefetch(&connections_[next]);
        __builtin_prefetch(reinterpret_cast<const char*>(&connections_[next] + 1) - 1);
      }
      const Finish entry = finishing_[i];
      Connection& connection = connections_[static_cast<std::size_t>(entry.connection)];
      if (entry.version != connection.version) {
        continue;
      }
      if (connection.end == now_) {
        finish(entry.connection, events);
      } else {
        connection.queued = connection.end;
        if (connection.end < Time::max()) {
          finishes_.push(connection.end, entry);
        }
      }
    }
    give_back(finishing_);
  }
  stop_draining();
  if (!starts_.empty() && starts_.first() == now_) {
    starts_.pop(starting_);
    for (const std::int32_t id : starting_) {
      Connection& connection = connections_[static_cast<std::size_t>(id)];
      if (connection.held) {
        connection.state = State::kHeld;
        connection.rate = 0;
        connection.end = Time::max();
      } else if (connection.bits > 0) {
        begin(id);
      } else {
        finish(id, events);
      }
    }
    give_back(starting_);
  }
  if (!deliveries_.empty() && deliveries_.first() == now_) {
    deliveries_.pop(delivered_);
    for (const std::uint64_t tag : delivered_) {
      events.push_back({now_, tag, NetworkEvent::Kind::kDelivered});
    }
    give_back(delivered_);
  }
}

void FluidNetwork::drain(Connection& connection, double bits, Time latency, std::uint64_t tag) {
  connection.bits = connection.left_bits = bits;
  connection.latency = latency;
  connection.tag = tag;
  connection.since = now_;
  connection.queued = Time::max();
}

void FluidNetwork::begin(std::int32_t id) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  connection.since = now_;
  connection.rate = 0;
  connection.state = State::kDraining;
  ++draining_;
  bound(id, &RateLimit::fresh);
  rates_.activate(VariableId(id));
}

void FluidNetwork::finish(std::int32_t id, std::vector<NetworkEvent>& events) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  connection.carried += connection.bits;
  ++connection.version;  // whatever still stands in finishes_ is void
  --live_;
  events.push_back({now_, connection.tag, NetworkEvent::Kind::kSent});
  deliveries_.push(now_ + connection.latency, connection.tag);
  start_next(id);
}

/// Newest first: what was activated last stands last in the lists, where it leaves no gap to fill.
void FluidNetwork::stop_draining() {
  std::ranges::reverse(stopping_);
  rates_.deactivate(stopping_);
  give_back(stopping_);
}

/// The connection's next flow, if one waits. If it may start at once nothing changes for the
/// others.
void FluidNetwork::start_next(std::int32_t id) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  const bool was_draining = connection.state == State::kDraining;
  const std::int32_t index = connection.first_post;
  const Post post = index < 0 ? Post{} : posts_[static_cast<std::size_t>(index)];
  const bool goes_on = index >= 0 && post.when <= now_ && post.bits > 0 && was_draining;
  if (was_draining && !goes_on) {
    stopping_.push_back(id);
    --draining_;
  }
  if (index < 0) {
    connection.bits = connection.left_bits = 0;
    connection.state = State::kIdle;
    return;
  }
  connection.first_post = post.next;
  posts_[static_cast<std::size_t>(index)].next = free_post_;
  free_post_ = index;
  drain(connection, post.bits, post.latency, post.tag);
  if (goes_on) {
    bound(id, &RateLimit::steady);
    reschedule(id);
  } else {
    connection.state = State::kFuture;
    connection.end = std::max(post.when, now_);
    starts_.push(connection.end, id);
  }
}

/// Calls f(value) for the numbers that make up the state of the connections, until it returns
/// false.
template <class F>
bool FluidNetwork::each_value(F f) const {
  for (const Connection& connection : connections_) {
    if (!f(static_cast<std::int64_t>(connection.state))) {
      return false;
    }
    if (connection.state == State::kIdle) {
      continue;
    }
    if (!f((connection.end - now_).count_ps())) {
      return false;
    }
    const auto index = static_cast<std::size_t>(&connection - connections_.data());
    if (connection.state == State::kDraining && index < limits_.size() &&
        !f(std::bit_cast<std::int64_t>(rates_.bound(VariableId(index))))) {
      return false;
    }
    if (connection.state == State::kDraining &&
        !(f((connection.since - now_).count_ps()) &&
          f(std::bit_cast<std::int64_t>(connection.left_bits)) &&
          f(std::bit_cast<std::int64_t>(connection.rate)))) {
      return false;
    }
    for (std::int32_t post = connection.first_post; post >= 0;
         post = posts_[static_cast<std::size_t>(post)].next) {
      if (!f((posts_[static_cast<std::size_t>(post)].when - now_).count_ps())) {
        return false;
      }
    }
  }
  return true;
}

void FluidNetwork::list_deliveries(std::vector<std::pair<Time, std::uint64_t>>& list) const {
  list.clear();
  deliveries_.for_each([&](Time when, std::uint64_t tag) { list.emplace_back(when - now_, tag); });
  std::ranges::sort(list);
}

void FluidNetwork::save_state(Snapshot& snapshot) const {
  snapshot.values.clear();
  each_value([&](std::int64_t value) {
    snapshot.values.push_back(value);
    return true;
  });
  list_deliveries(snapshot.deliveries);
}

bool FluidNetwork::same_state(const Snapshot& snapshot) {
  std::size_t next = 0;
  const bool same = each_value([&](std::int64_t value) {
    return next < snapshot.values.size() && snapshot.values[next++] == value;
  });
  if (!same || next != snapshot.values.size() || deliveries_.size() != snapshot.deliveries.size()) {
    return false;
  }
  list_deliveries(listed_);
  return listed_ == snapshot.deliveries;
}

void FluidNetwork::shift(Time by) {
  now_ += by;
  for (Connection& connection : connections_) {
    if (connection.state == State::kIdle) {
      continue;
    }
    connection.since += by;
    connection.end += connection.end < Time::max() ? by : Time();
    connection.queued += connection.queued < Time::max() ? by : Time();
    for (std::int32_t post = connection.first_post; post >= 0;
         post = posts_[static_cast<std::size_t>(post)].next) {
      posts_[static_cast<std::size_t>(post)].when += by;
    }
  }
  starts_.shift(by);
  finishes_.shift(by);
  deliveries_.shift(by);
}

double FluidNetwork::carried_bits(ConnectionId id) const {
  const Connection& connection = connections_[id.index()];
  return connection.carried +
         (connection.state == State::kDraining || connection.state == State::kHeld
              ? connection.bits - left_bits(connection)
              : 0.0);
}

}  // namespace lockstep
