#include "simulator/network/flow/fluid_network.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/stop_signal.h"
#include "simulator/network/flow/give_back.h"

namespace lockstep {
namespace {

__extension__ using Wide = __int128;

/// A flow is done when it has less than this part of its bits left: rates are rounded down, and
/// what would end at a picosecond shall not end at the next one for that.
constexpr double kRounding = 1e-14;

/// What a flow of so many bits has to send.
Wide parts_of(double bits) {
  const auto whole = static_cast<std::int64_t>(bits);
  const double rest = bits - static_cast<double>(whole);
  constexpr auto kParts = static_cast<double>(FluidNetwork::kParts);
  return static_cast<Wide>(whole) * FluidNetwork::kParts +
         static_cast<std::int64_t>(rest * kParts) - static_cast<Wide>(bits * (kRounding * kParts));
}

/// PRECONDITION: parts >= 0.
double to_double(Wide parts) {
  return static_cast<double>(static_cast<std::int64_t>(parts >> 64)) * 0x1p64 +
         static_cast<double>(static_cast<std::uint64_t>(parts));
}

}  // namespace

ConnectionId FluidNetwork::connect(std::span<const MaxMin::Term> terms) {
  const VariableId variable = rates_.add_variable(terms, MaxMin::kUnbounded, /*active=*/false);
  LOCKSTEP_CHECK(variable.index() == connections_.size(), "connections are variables");
  connections_.emplace_back();
  freight_.emplace_back();
  return ConnectionId(variable.value);
}

void FluidNetwork::bundle(std::span<const std::int32_t> connections) {
  bundle_.resize(connections_.size(), -1);
  for (const std::int32_t id : connections) {
    bundle_[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(bundles_.size());
  }
  bundles_.emplace_back().variable = connections.front();
}

/// When this much will have been sent, from now on at this rate: the quotient rounded up.
inline Time FluidNetwork::end_of(Wide left, std::int64_t rate) const {
  const auto room = static_cast<double>((Time::max() - now_).count_ps());
  const double estimate = std::ceil(to_double(left) / static_cast<double>(rate));
  if (!(estimate < room)) {
    return Time::max();
  }
  auto ps = static_cast<std::int64_t>(estimate);  // right but for the rounding of doubles
  Wide sent = static_cast<Wide>(ps) * rate;
  if (const Wide far = static_cast<Wide>(rate) * 8; sent - left >= far || left - sent >= far) {
    ps = static_cast<std::int64_t>((left + rate - 1) / rate);
    sent = static_cast<Wide>(ps) * rate;
  }
  for (; sent < left; sent += rate) {
    ++ps;
  }
  for (; sent - rate >= left && ps > 0; sent -= rate) {
    --ps;
  }
  return now_ + Time::ps(ps);
}

void FluidNetwork::set_limit(ConnectionId connection, RateLimit limit) {
  LOCKSTEP_CHECK(!is_bundled(connection), "the connections of a bundle have no limits");
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
  LOCKSTEP_CHECK(!is_bundled(connection), "a law knows no bundles");
  caps_[connection.index()] = rate;
  rates_.set_bound(VariableId(connection.value), std::min(rate, present_[connection.index()]));
}

void FluidNetwork::add_term(ConnectionId connection, MaxMin::Term term) {
  LOCKSTEP_CHECK(!is_bundled(connection), "the terms of a bundle stay as they are");
  rates_.add_term(VariableId(connection.value), term);
}

void FluidNetwork::reroute(ConnectionId connection, std::span<const MaxMin::Term> terms) {
  LOCKSTEP_CHECK(!is_bundled(connection), "the terms of a bundle stay as they are");
  if (connections_[connection.index()].state != State::kDraining) {
    rates_.remove_variable(VariableId(connection.value));
    const VariableId again = rates_.add_variable(terms, MaxMin::kUnbounded, /*active=*/false);
    LOCKSTEP_CHECK(again.value == connection.value, "a variable's id is used again");
  }
}

void FluidNetwork::hold(ConnectionId id) {
  LOCKSTEP_CHECK(!is_bundled(id), "a bundle is not held");
  Connection& connection = connections_[id.index()];
  connection.held = true;
  if (connection.state != State::kDraining) {
    return;
  }
  connection.left = left_parts(id.index());
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
    drain(id.value, bits, latency, tag);
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

void FluidNetwork::resume(ConnectionId id, double bits, Time latency, Time since, std::int64_t rate,
                          std::uint64_t tag) {
  LOCKSTEP_CHECK(!is_bundled(id) && connections_[id.index()].state == State::kIdle,
                 "a flow is resumed where nothing is under way");
  ++live_;
  drain(id.value, bits, latency, tag);
  connections_[id.index()].left -= sent_since(rate, since);
  begin(id.value);
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
  coming_.clear();
  while (true) {
    throw_if_stopped();
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
  if (!stirred_.empty()) {
    count_copies();
  }
  solve_rates();
  if (law_ != nullptr && (!law_changed_.empty() || law_next_ <= now_)) {
    law_next_ = law_->adjust(*this, law_changed_);
    solve_rates();
  }
}

void FluidNetwork::solve_rates() {
  const std::span<const VariableId> changed = rates_.solve();
  for (std::size_t i = 0; i < changed.size(); ++i) {
    constexpr std::size_t kAhead = 6;
    if (i + kAhead < changed.size()) {
      __builtin_prefetch(&connections_[changed[i + kAhead].index()]);
    }
    const VariableId id = changed[i];
    if (law_ != nullptr) {
      law_changed_.push_back(id);
    }
    const std::int64_t rate = rates_.rate_units(id);
    if (Bundle* const bundle = bundle_of(id.value)) {
      settle(*bundle);
      bundle->rate = rate;
      stir(*bundle);
      continue;
    }
    Connection& connection = connections_[id.index()];
    if (connection.rate == rate) {
      continue;  // adopted with it
    }
    connection.left = left_parts(id.index());
    connection.since = now_;
    connection.rate = rate;
    reschedule(id.value);
  }
  for (const std::int32_t index : stirred_) {
    Bundle& bundle = bundles_[static_cast<std::size_t>(index)];
    bundle.stirred = false;
    reschedule(bundle);
  }
  stirred_.clear();
  // Keeps the queue in proportion to the flows when rates rise often.
  constexpr std::size_t kSlack = 1024;
  if (finishes_.size() > 2 * draining_ + kSlack) {
    finishes_.remove_if(
        [&](const Finish& entry) { return entry.version != version_of(entry.connection); });
  }
}

std::uint32_t FluidNetwork::version_of(std::int32_t connection) const {
  return connection >= 0 ? connections_[static_cast<std::size_t>(connection)].version
                         : bundles_[static_cast<std::size_t>(~connection)].version;
}

FluidNetwork::Wide FluidNetwork::left_parts(std::size_t index) const {
  const Connection& connection = connections_[index];
  if (connection.state == State::kDraining && is_bundled(ConnectionId(index))) {
    const Bundle& bundle = bundles_[static_cast<std::size_t>(bundle_[index])];
    const Wide clock = bundle.clock + sent_since(bundle.rate, bundle.since);
    return std::max<Wide>(0, connection.left - clock);
  }
  return std::max<Wide>(0, connection.left - sent_since(connection.rate, connection.since));
}

double FluidNetwork::left(ConnectionId connection) const {
  return to_double(left_parts(connection.index())) / static_cast<double>(kParts);
}

/// A later end leaves the queued entry as it is: it is looked at again when its time comes.
void FluidNetwork::reschedule(std::int32_t id) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  connection.end = end_of(connection.left, connection.rate);
  if (connection.end < connection.queued) {
    connection.queued = connection.end;
    finishes_.push(connection.end, {id, ++connection.version});
  }
}

/// To be counted and scheduled again before time goes on.
void FluidNetwork::stir(Bundle& bundle) {
  if (!bundle.stirred) {
    bundle.stirred = true;
    stirred_.push_back(static_cast<std::int32_t>(&bundle - bundles_.data()));
  }
}

/// Brings its clock up to the present.
void FluidNetwork::settle(Bundle& bundle) {
  bundle.clock += sent_since(bundle.rate, bundle.since);
  bundle.since = now_;
}

/// Tells the max-min system how many flows of each bundle drain now.
void FluidNetwork::count_copies() {
  constexpr std::size_t kStage = 4;  // from one miss to the next that depends on it
  const auto ahead = [&](std::size_t i, std::size_t stages) {
    const std::size_t place = i + stages * kStage;
    return place < stirred_.size() ? &bundles_[static_cast<std::size_t>(stirred_[place])] : nullptr;
  };
  for (std::size_t i = 0; i < stirred_.size(); ++i) {
    if (const Bundle* bundle = ahead(i, 3)) {
      rates_.fetch(VariableId(bundle->variable));
    }
    if (const Bundle* bundle = ahead(i, 2)) {
      rates_.fetch_elements(VariableId(bundle->variable));
    }
    if (const Bundle* bundle = ahead(i, 1)) {
      rates_.fetch_constraints(VariableId(bundle->variable));
    }
    Bundle& bundle = bundles_[static_cast<std::size_t>(stirred_[i])];
    const auto copies = static_cast<std::int32_t>(bundle.goals.size());
    if (copies == bundle.copies) {
      continue;
    }
    bundle.copies = copies;
    if (copies > 0) {
      rates_.set_copies(VariableId(bundle.variable), copies);
    } else {
      stopping_.push_back(bundle.variable);
      settle(bundle);
      bundle.rate = 0;
    }
  }
  stop_draining();
}

void FluidNetwork::reschedule(Bundle& bundle) {
  bundle.end = Time::max();
  if (!bundle.goals.empty()) {
    settle(bundle);
    bundle.end = end_of(bundle.goals.top().goal - bundle.clock, bundle.rate);
  }
  if (bundle.end < bundle.queued) {
    bundle.queued = bundle.end;
    finishes_.push(bundle.end,
                   {~static_cast<std::int32_t>(&bundle - bundles_.data()), ++bundle.version});
  }
}

void FluidNetwork::finish(Bundle& bundle, std::vector<NetworkEvent>& events) {
  settle(bundle);
  bundle.queued = Time::max();
  stir(bundle);
  while (!bundle.goals.empty() && bundle.goals.top().goal <= bundle.clock) {
    const std::int32_t connection = bundle.goals.top().connection;
    bundle.goals.pop();
    finish(connection, events);
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
  for (const std::int32_t id : nearer_) {
    rates_.fetch_constraints(VariableId(id));
  }
  for (const std::int32_t id : near_) {
    rates_.fetch_elements(VariableId(id));
  }
  nearer_.swap(near_);
  near_.clear();
  if (!finishes_.empty() && finishes_.first() == now_) {
    finishes_.pop(finishing_, [&](const Finish& entry) {
      fetch(entry);
      const std::int32_t id = entry.connection >= 0
                                  ? entry.connection
                                  : bundles_[static_cast<std::size_t>(~entry.connection)].variable;
      rates_.fetch(VariableId(id));
      near_.push_back(id);
    });
    if (finishing_.size() > events.capacity()) {
      events.reserve(events.size() + finishing_.size());
    }
    constexpr std::size_t kAhead = 8;  // entries, to have their memory when they come
    for (std::size_t i = 0; i < finishing_.size(); ++i) {
      if (i + kAhead < finishing_.size()) {
        fetch(finishing_[i + kAhead]);
      }
      const Finish entry = finishing_[i];
      if (entry.version != version_of(entry.connection)) {
        continue;
      }
      if (entry.connection < 0) {
        Bundle& bundle = bundles_[static_cast<std::size_t>(~entry.connection)];
        if (bundle.end == now_) {
          finish(bundle, events);
        } else {
          look_again(bundle, entry);
        }
      } else {
        Connection& connection = connections_[static_cast<std::size_t>(entry.connection)];
        if (connection.end == now_) {
          finish(entry.connection, events);
        } else {
          look_again(connection, entry);
        }
      }
    }
    give_back(finishing_);
  }
  stop_draining();
  if (!starts_.empty() && starts_.first() == now_) {
    starts_.pop(starting_, [&](std::int32_t id) {
      __builtin_prefetch(&connections_[static_cast<std::size_t>(id)]);
      rates_.fetch(VariableId(id));
      near_.push_back(id);
    });
    for (std::size_t i = 0; i < starting_.size(); ++i) {
      rates_.fetch_ahead(starting_, i);
      if (i + 4 < starting_.size()) {
        fetch(ConnectionId(starting_[i + 4]));
      }
      const std::int32_t id = starting_[i];
      Connection& connection = connections_[static_cast<std::size_t>(id)];
      if (connection.held) {
        connection.state = State::kHeld;
        connection.rate = 0;
        connection.end = Time::max();
      } else if (freight_[static_cast<std::size_t>(id)].bits > 0) {
        begin(id);
      } else {
        finish(id, events);
      }
    }
    give_back(starting_);
  }
  if (!deliveries_.empty() && deliveries_.first() == now_) {
    deliveries_.pop(delivered_, [&](std::uint64_t tag) { coming_.push_back(tag); });
    for (const std::uint64_t tag : delivered_) {
      events.push_back({now_, tag, NetworkEvent::Kind::kDelivered});
    }
    give_back(delivered_);
  }
}

void FluidNetwork::drain(std::int32_t id, double bits, Time latency, std::uint64_t tag) {
  Freight& freight = freight_[static_cast<std::size_t>(id)];
  freight.latency = latency;
  freight.tag = tag;
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  freight.bits = bits;
  connection.left = parts_of(bits);
  connection.rate = 0;
  connection.since = now_;
  connection.queued = Time::max();
}

void FluidNetwork::begin(std::int32_t id) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  connection.since = now_;
  connection.rate = 0;
  connection.state = State::kDraining;
  ++draining_;
  if (Bundle* const bundle = bundle_of(id)) {
    settle(*bundle);
    set_goal(*bundle, id);
    return;
  }
  bound(id, &RateLimit::fresh);
  rates_.activate(VariableId(id));
}

/// An entry of finishes_ came too early.
template <class Ending>
void FluidNetwork::look_again(Ending& ending, const Finish& entry) {
  ending.queued = ending.end;
  if (ending.end < Time::max()) {
    finishes_.push(ending.end, entry);
  }
}

void FluidNetwork::fetch(const Finish& entry) const {
  if (entry.connection < 0) {
    __builtin_prefetch(&bundles_[static_cast<std::size_t>(~entry.connection)]);
  } else {
    fetch(ConnectionId(entry.connection));
  }
}

/// Its flow, all of which is left, ends when the bundle's clock, which is right, comes to its goal.
void FluidNetwork::set_goal(Bundle& bundle, std::int32_t id) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  connection.left += bundle.clock;
  bundle.goals.push({connection.left, id});
  stir(bundle);
}

void FluidNetwork::finish(std::int32_t id, std::vector<NetworkEvent>& events) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  Freight& freight = freight_[static_cast<std::size_t>(id)];
  ++connection.version;  // whatever still stands in finishes_ is void
  --live_;
  if (tells_sent_) {
    if (carried_.size() <= static_cast<std::size_t>(id)) {
      carried_.resize(connections_.size());
    }
    carried_[static_cast<std::size_t>(id)] += freight.bits;
    events.push_back({now_, freight.tag, NetworkEvent::Kind::kSent});
  }
  if (delivers_) {
    deliveries_.push(now_ + freight.latency, freight.tag);
  }
  start_next(id);
}

/// Newest first: what was activated last stands last in the lists, where it leaves no gap to fill.
void FluidNetwork::stop_draining() {
  if (stopping_.empty()) {
    return;
  }
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
  Bundle* const bundle = bundle_of(id);
  if (was_draining && !goes_on) {
    if (bundle == nullptr) {
      stopping_.push_back(id);
    }
    --draining_;
  }
  if (index < 0) {
    freight_[static_cast<std::size_t>(id)].bits = 0;
    connection.left = 0;
    connection.rate = 0;
    connection.state = State::kIdle;
    if (tells_emptied_) {
      emptied_.push_back(id);
    }
    return;
  }
  connection.first_post = post.next;
  posts_[static_cast<std::size_t>(index)].next = free_post_;
  free_post_ = index;
  const std::int64_t rate = connection.rate;
  drain(id, post.bits, post.latency, post.tag);
  if (goes_on && bundle != nullptr) {
    set_goal(*bundle, id);
  } else if (goes_on) {
    connection.rate = rate;
    bound(id, &RateLimit::steady);
    reschedule(id);
  } else {
    connection.state = State::kFuture;
    connection.end = std::max(post.when, now_);
    starts_.push(connection.end, id);
  }
}

double FluidNetwork::carried_bits(ConnectionId id) const {
  const State state = connections_[id.index()].state;
  const double earlier = id.index() < carried_.size() ? carried_[id.index()] : 0.0;
  return earlier + (state == State::kDraining || state == State::kHeld ? size(id) - left(id) : 0.0);
}

}  // namespace lockstep
