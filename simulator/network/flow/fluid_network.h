#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/network/flow/max_min.h"
#include "simulator/network/flow/rate_law.h"
#include "simulator/network/flow/rate_limit.h"
#include "simulator/network/flow/stamp_queue.h"
#include "simulator/network/network_engine.h"

namespace lockstep {

/// Fluid flows over shared constraints, on a clock. It knows connections (a set of terms of a
/// max-min system) but neither topologies nor routes: FlowEngine gives it those of a fabric, the
/// collective simulation those of a fabric folded by symmetry.
///
/// A connection carries one flow at a time, in order of the starts. A flow drains at its max-min
/// fair rate from its start, or the end of the one before, until its last bit has left:
///
///     sent      = the moment at which the integral of the rate reaches its bits
///     delivered = sent + its latency
///
/// Sent is rounded up to the picosecond. Rates change only when a connection starts or stops
/// draining; all changes of one time stamp go into one solve. What a flow has left is kept as a
/// double since the last change of its rate, never rounded to the clock, so long flows do not
/// drift; it depends on differences of time only, so the same situation at another time goes on in
/// the same way, to the last bit.
///
/// Complexity: a flow costs its terms, three queue operations (StampQueue) and the two solves of
/// MaxMin around it. Memory: 110 B a connection, 36 B a flow that waits for its connection, and
/// MaxMin's 60 B a connection and 24 B a term. No allocation per flow once the arrays have grown.
class FluidNetwork {
 public:
  /// Rates are multiples of this part of a bit per second.
  static constexpr double kRateUnits = 256;

  FluidNetwork() : rates_(kRateUnits) {}

  /// Makes room for so many connections with so many terms together.
  void reserve(std::size_t connections, std::size_t terms) {
    connections_.reserve(connections);
    rates_.reserve(connections, terms);
  }

  /// In bits per second. PRECONDITION: 0 < capacity <= 4.5e15.
  ConstraintId add_constraint(double capacity) { return rates_.add_constraint(capacity); }
  void set_capacity(ConstraintId constraint, double capacity) {
    rates_.set_capacity(constraint, capacity);
  }
  ConnectionId connect(std::span<const MaxMin::Term> terms);
  /// What its flows keep to from their start on.
  void set_limit(ConnectionId connection, RateLimit limit);
  /// From now on the law may cap rates; it must outlive the network. Snapshots do not know of it.
  void set_law(RateLaw* law) { law_ = law; }
  /// For the law: a connection's flows keep to this rate from now on, in bits per second.
  void cap(ConnectionId connection, double rate);
  bool is_draining(ConnectionId connection) const {
    return connections_[connection.index()].state == State::kDraining;
  }
  /// Bits of its present flow, and those of them that have not left.
  double size(ConnectionId connection) const { return connections_[connection.index()].bits; }
  double left(ConnectionId connection) const { return left_bits(connections_[connection.index()]); }
  void add_term(ConnectionId connection, MaxMin::Term term);
  /// New terms for a connection that is not draining(); else nothing happens.
  void reroute(ConnectionId connection, std::span<const MaxMin::Term> terms);
  /// From now on nothing leaves over the connection, until it is let go; its flows keep what they
  /// have left.
  void hold(ConnectionId connection);
  void let_go(ConnectionId connection);
  /// It is held, and has a flow that would be leaving.
  bool is_stuck(ConnectionId connection) const {
    return connections_[connection.index()].state == State::kHeld;
  }
  std::uint64_t tag(ConnectionId connection) const { return connections_[connection.index()].tag; }
  /// The latencies of its present flow and of those that wait for it become latency_of(bits).
  template <class F>
  void set_latencies(ConnectionId connection, F latency_of);

  /// PRECONDITION: bits >= 0, when >= now().
  void start(ConnectionId connection, double bits, Time latency, Time when, std::uint64_t tag);
  /// As NetworkEngine::advance().
  Time advance(Time limit, std::vector<NetworkEvent>& events);
  Time now() const { return now_; }
  /// When advance() would do something next, events or not; Time::max() where nothing is to come.
  Time next_change();
  /// Nothing is under way or to start.
  bool idle() const { return live_ == 0 && deliveries_.empty(); }

  /// Takes over what a connection of another network has under way, that network's present being
  /// this one's: nothing about it is computed anew, so it goes on to the last bit as it would have
  /// gone on there. `tag_of(tag)` are the tags here. What has been sent and not delivered is no
  /// part of it (for_each_delivery(), add_delivery()). PRECONDITION: `mine` is idle.
  template <class F>
  void adopt(ConnectionId mine, const FluidNetwork& from, ConnectionId theirs, F tag_of);
  /// Calls f(time from now, tag).
  template <class F>
  void for_each_delivery(F f) const {
    deliveries_.for_each([&](Time when, std::uint64_t tag) { f(when - now_, tag); });
  }
  void add_delivery(Time after, std::uint64_t tag) { deliveries_.push(now_ + after, tag); }

  /// What there is to happen, relative to now(): two moments with equal snapshots have equal
  /// futures but for the shift in time, if the same starts follow.
  struct Snapshot {
    std::vector<std::int64_t> values;
    std::vector<std::pair<Time, std::uint64_t>> deliveries;
  };
  /// O(connections + flows under way).
  void save_state(Snapshot& snapshot) const;
  /// Compares number for number and stops at the first difference.
  bool same_state(const Snapshot& snapshot);
  /// Moves the clock and everything that is under way. PRECONDITION: by >= 0.
  void shift(Time by);

  /// Bits that have left over a connection from time 0 to now.
  double carried_bits(ConnectionId connection) const;
  /// Those of its finished flows, counted from here on anew.
  double take_carried_bits(ConnectionId connection) {
    return std::exchange(connections_[connection.index()].carried, 0.0);
  }
  /// Flows that have not been sent completely, future ones included.
  std::size_t live_flows() const { return live_; }
  /// The present rates, for checks and tests; variables are connections.
  const MaxMin& rates() const { return rates_; }

 private:
  enum class State : std::uint8_t { kIdle, kFuture, kDraining, kHeld };
  struct Connection {
    std::uint64_t tag = 0;
    Time latency;
    double bits = 0;       ///< of the present flow
    double left_bits = 0;  ///< of them, at `since`
    double rate = 0;       ///< bits per second since then
    double carried = 0;    ///< by earlier flows
    Time since;
    Time end;                   ///< at this rate; of a future flow its start
    Time queued;                ///< when finishes_ will look at it; not after `end`
    std::uint32_t version = 0;  ///< of that entry
    std::int32_t first_post = -1, last_post = -1;  ///< flows that wait for this one
    State state = State::kIdle;
    bool held = false;
  };
  struct Post {
    double bits;
    Time latency, when;
    std::uint64_t tag;
    std::int32_t next;
  };
  /// Valid while its version is the connection's.
  struct Finish {
    std::int32_t connection;
    std::uint32_t version;
  };

  template <class F>
  bool each_value(F f) const;
  void list_deliveries(std::vector<std::pair<Time, std::uint64_t>>& list) const;
  void update_rates();
  void solve_rates();
  void process_now(std::vector<NetworkEvent>& events);
  Time next_stamp() const;
  void append(Connection& connection, const Post& post);
  void begin(std::int32_t connection);
  void drain(Connection& connection, double bits, Time latency, std::uint64_t tag);
  void finish(std::int32_t connection, std::vector<NetworkEvent>& events);
  void start_next(std::int32_t connection);
  void stop_draining();
  double left_bits(const Connection& connection) const;
  void bound(std::int32_t connection, double RateLimit::*kind);
  void reschedule(std::int32_t connection);

  MaxMin rates_;
  std::vector<Connection> connections_;
  std::vector<RateLimit> limits_;  // empty while no connection has one
  RateLaw* law_ = nullptr;
  Time law_next_ = Time::max();
  std::vector<double> caps_, present_;  // of the law, and of the windows, with a law
  std::vector<VariableId> law_changed_;
  std::vector<Post> posts_;
  std::int32_t free_post_ = -1;
  StampQueue<std::int32_t> starts_;
  StampQueue<Finish> finishes_;
  StampQueue<std::uint64_t> deliveries_;
  std::vector<std::int32_t> starting_;
  std::vector<Finish> finishing_;
  std::vector<std::int32_t> stopping_;
  std::vector<std::uint64_t> delivered_;
  std::vector<std::pair<Time, std::uint64_t>> listed_;
  Time now_;
  std::size_t live_ = 0, draining_ = 0;
};

template <class F>
void FluidNetwork::set_latencies(ConnectionId id, F latency_of) {
  Connection& connection = connections_[id.index()];
  if (connection.state == State::kIdle) {
    return;
  }
  connection.latency = latency_of(connection.bits);
  for (std::int32_t at = connection.first_post; at >= 0;) {
    Post& post = posts_[static_cast<std::size_t>(at)];
    post.latency = latency_of(post.bits);
    at = post.next;
  }
}

template <class F>
void FluidNetwork::adopt(ConnectionId id, const FluidNetwork& from, ConnectionId theirs, F tag_of) {
  const Connection& old = from.connections_[theirs.index()];
  if (old.state == State::kIdle) {
    return;
  }
  Connection& connection = connections_[id.index()];
  const double carried = connection.carried;
  connection = old;
  connection.carried = carried;
  connection.tag = tag_of(old.tag);
  connection.since = now_ + (old.since - from.now_);
  connection.end = old.end < Time::max() ? now_ + (old.end - from.now_) : old.end;
  connection.queued = Time::max();
  connection.first_post = connection.last_post = -1;
  ++live_;
  if (old.state == State::kDraining) {
    rates_.activate(VariableId(id.value));
    ++draining_;
    if (old.rate > 0 && connection.end < Time::max()) {
      connection.queued = connection.end;
      finishes_.push(connection.end, {id.value, connection.version});
    }
  } else {
    starts_.push(connection.end, id.value);
  }
  for (std::int32_t at = old.first_post; at >= 0;
       at = from.posts_[static_cast<std::size_t>(at)].next) {
    const Post& post = from.posts_[static_cast<std::size_t>(at)];
    append(connection,
           {post.bits, post.latency, now_ + (post.when - from.now_), tag_of(post.tag), -1});
    ++live_;
  }
}

}  // namespace lockstep
