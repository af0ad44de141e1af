#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "simulator/network/flow/four_ary_heap.h"
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
/// draining; all changes of one time stamp go into one solve. What a flow has left is a whole
/// number of parts: rates are multiples of 1 / kRateUnits of a bit per second, times are
/// picoseconds, so a part is 1 / kParts of a bit and nothing is ever rounded. The same situation at
/// another time, in another network or reached in another way goes on alike, to the last bit.
///
/// Bundles. Connections with the same terms have the same rate at every moment. A bundle of them is
/// one variable of the max-min system with as many copies as drain, and one clock: what each of
/// them would have sent had it always drained (the virtual time of fair queueing: Parekh, Gallager,
/// IEEE/ACM ToN 1993, section II). A flow of a bundle ends when the clock comes to its goal, which
/// stands from its start on, so a change of the rate costs the bundle once, not each flow.
///
/// Complexity: a flow costs its terms, three queue operations (StampQueue) and the two solves of
/// MaxMin around it. Memory: 110 B a connection, 36 B a flow that waits for its connection, and
/// MaxMin's 60 B a connection and 24 B a term. No allocation per flow once the arrays have grown.
class FluidNetwork {
 public:
  /// Rates are multiples of this part of a bit per second.
  static constexpr double kRateUnits = 256;
  /// What a capacity counts as, to the nearest unit: as MaxMin has it.
  static std::int64_t units(double capacity) {
    return std::max<std::int64_t>(1, std::llround(capacity * kRateUnits));
  }
  /// Of a bit.
  static constexpr std::int64_t kParts = 256'000'000'000'000;

  FluidNetwork() : rates_(kRateUnits) {}

  /// Makes room for so many connections with so many terms together.
  void reserve(std::size_t connections, std::size_t terms) {
    connections_.reserve(connections);
    freight_.reserve(connections);
    rates_.reserve(connections, terms);
  }

  /// See MaxMin::certify().
  void certify() { rates_.certify(); }

  /// In bits per second. PRECONDITION: 0 < capacity <= 4.5e15.
  ConstraintId add_constraint(double capacity) { return rates_.add_constraint(capacity); }
  void set_capacity(ConstraintId constraint, double capacity) {
    rates_.set_capacity(constraint, capacity);
  }
  ConnectionId connect(std::span<const MaxMin::Term> terms);
  /// Connections over the same constraints, which share a rate from now on. They have no limits,
  /// are not rerouted, held or adopted, and there is no law. PRECONDITION: at least two, with equal
  /// terms, without flows.
  void bundle(std::span<const std::int32_t> connections);
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
  double size(ConnectionId connection) const { return freight_[connection.index()].bits; }
  double left(ConnectionId connection) const;
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
  std::uint64_t tag(ConnectionId connection) const { return freight_[connection.index()].tag; }
  /// The latencies of its present flow and of those that wait for it become latency_of(bits).
  template <class F>
  void set_latencies(ConnectionId connection, F latency_of);

  /// PRECONDITION: bits >= 0, when >= now().
  void start(ConnectionId connection, double bits, Time latency, Time when, std::uint64_t tag);
  /// A flow that has been leaving since an earlier moment, at so many units all the while. It goes
  /// on to the last bit as it would have gone on. PRECONDITION: the connection has no flow and is
  /// in no bundle; not all of it has left.
  void resume(ConnectionId connection, double bits, Time latency, Time since, std::int64_t rate,
              std::uint64_t tag);
  /// From now on advance() tells of deliveries alone, and what connections have carried is not
  /// counted.
  void leave_out_sent() { tells_sent_ = false; }
  /// From now on emptied() names the connections whose last flow has left, each time it has; or
  /// not.
  void tell_emptied(bool tells) { tells_emptied_ = tells; }
  /// The caller takes them.
  std::vector<std::int32_t>& emptied() { return emptied_; }
  /// Whether flows are delivered when they have been sent, as at first. If not, advance() tells
  /// that they are sent, and nothing else.
  void deliver(bool delivers) { delivers_ = delivers; }
  /// As NetworkEngine::advance().
  Time advance(Time limit, std::vector<NetworkEvent>& events);
  Time now() const { return now_; }
  /// When advance() would do something next, events or not; Time::max() where nothing is to come.
  Time next_change();
  /// Tags of some deliveries that are soon to come, as the last advance() saw them, each named once
  /// or several times. The caller may take them.
  std::vector<std::uint64_t>& coming() { return coming_; }
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
    return connection.index() < carried_.size() ? std::exchange(carried_[connection.index()], 0.0)
                                                : 0.0;
  }
  /// Asks for the memory that start() on this connection will need.
  void fetch(ConnectionId connection) const {
    __builtin_prefetch(&connections_[connection.index()]);
    __builtin_prefetch(&freight_[connection.index()]);
    if (is_bundled(connection)) {
      __builtin_prefetch(&bundles_[static_cast<std::size_t>(bundle_[connection.index()])]);
    }
  }
  /// Flows that have not been sent completely, future ones included.
  std::size_t live_flows() const { return live_; }
  /// The present rates, for checks and tests; variables are connections.
  const MaxMin& rates() const { return rates_; }

 private:
  enum class State : std::uint8_t { kIdle, kFuture, kDraining, kHeld };
  __extension__ using Wide = __int128;
  /// What a change of rates looks at: one cache line.
  struct alignas(64) Connection {
    Wide left = 0;          ///< parts of the present flow at `since`; in a bundle: its goal
    std::int64_t rate = 0;  ///< units since then
    Time since;
    Time end;                   ///< at this rate; of a future flow its start
    Time queued;                ///< when finishes_ will look at it; not after `end`
    std::uint32_t version = 0;  ///< of that entry
    std::int32_t first_post = -1, last_post = -1;  ///< flows that wait for this one
    State state = State::kIdle;
    bool held = false;
  };
  static_assert(sizeof(Connection) == 64);
  /// The rest of it.
  struct Freight {
    std::uint64_t tag = 0;  ///< of the present flow, as its latency and size
    Time latency;
    double bits = 0;
  };
  struct Goal {
    Wide goal;
    std::int32_t connection;
    bool operator<(const Goal& other) const { return goal < other.goal; }
  };
  struct Bundle {
    Wide clock = 0;  ///< at `since`
    std::int64_t rate = 0;
    Time since;
    Time end = Time::max(), queued = Time::max();  ///< of the flow with the first goal; as above
    std::uint32_t version = 0;
    std::int32_t variable = 0;
    std::int32_t copies = 0;  ///< in the system
    bool stirred = false;     ///< flows have started or ended since the last solve
    FourAryHeap<Goal> goals;  ///< of what drains
  };
  struct Post {
    double bits;
    Time latency, when;
    std::uint64_t tag;
    std::int32_t next;
  };
  /// Valid while its version is the connection's or the bundle's (~index).
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
  void drain(std::int32_t connection, double bits, Time latency, std::uint64_t tag);
  void finish(std::int32_t connection, std::vector<NetworkEvent>& events);
  void start_next(std::int32_t connection);
  void stop_draining();
  Wide sent_since(std::int64_t rate, Time since) const {
    return static_cast<Wide>(rate) * (now_ - since).count_ps();
  }
  Time end_of(Wide left, std::int64_t rate) const;
  void bound(std::int32_t connection, double RateLimit::*kind);
  void reschedule(std::int32_t connection);
  Wide left_parts(std::size_t connection) const;
  Bundle* bundle_of(std::int32_t connection) {
    const auto index = static_cast<std::size_t>(connection);
    return index < bundle_.size() && bundle_[index] >= 0
               ? &bundles_[static_cast<std::size_t>(bundle_[index])]
               : nullptr;
  }
  bool is_bundled(ConnectionId connection) const {
    return connection.index() < bundle_.size() && bundle_[connection.index()] >= 0;
  }
  void stir(Bundle& bundle);
  void settle(Bundle& bundle);
  void count_copies();
  void reschedule(Bundle& bundle);
  void finish(Bundle& bundle, std::vector<NetworkEvent>& events);
  void set_goal(Bundle& bundle, std::int32_t connection);
  template <class Ending>
  void look_again(Ending& ending, const Finish& entry);
  void fetch(const Finish& entry) const;
  std::uint32_t version_of(std::int32_t connection) const;

  MaxMin rates_;
  std::vector<Connection> connections_;
  std::vector<Freight> freight_;  // per connection
  std::vector<double> carried_;   // bits of earlier flows, per connection; none where unwanted
  std::vector<std::int32_t>
      bundle_;  // per connection, -1 where it has none; none while there are none
  std::vector<Bundle> bundles_;
  std::vector<std::int32_t> stirred_;  // bundles
  std::vector<RateLimit> limits_;      // empty while no connection has one
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
  std::vector<std::int32_t> near_, nearer_;  // what starts or ends soon: memory is asked for ahead
  std::vector<std::uint64_t> coming_;        // tags of deliveries soon to come
  std::vector<std::pair<Time, std::uint64_t>> listed_;
  std::vector<std::int32_t> emptied_;
  bool tells_sent_ = true, tells_emptied_ = false, delivers_ = true;
  Time now_;
  std::size_t live_ = 0, draining_ = 0;
};

template <class F>
void FluidNetwork::set_latencies(ConnectionId id, F latency_of) {
  Connection& connection = connections_[id.index()];
  if (connection.state == State::kIdle) {
    return;
  }
  freight_[id.index()].latency = latency_of(freight_[id.index()].bits);
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
  LOCKSTEP_CHECK(!is_bundled(id) && !from.is_bundled(theirs), "bundles are not adopted");
  Connection& connection = connections_[id.index()];
  connection = old;
  const Freight& load = from.freight_[theirs.index()];
  freight_[id.index()].tag = tag_of(load.tag);
  freight_[id.index()].latency = load.latency;
  freight_[id.index()].bits = load.bits;
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
