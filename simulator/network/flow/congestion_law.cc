#include "simulator/network/flow/congestion_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/index.h"
#include "simulator/network/flow/fluid_network.h"

namespace lockstep {
namespace {

constexpr double kFull = 1 - 1e-6;  ///< of a port's capacity or level: as good as all
constexpr double kAll = 1 - 1e-3;   ///< of a connection: its shares at one distance are rounded
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLeastShare = 1e-3;
/// A cut follows a mark by so many round trips: the mark's way to the receiver and back, and that
/// of what is sent less (docs/models.md).
constexpr double kReaction = 2;
constexpr std::size_t kHistory = 64;  ///< steps
constexpr std::size_t kShort = 64;    ///< a list that need not be shortened

/// f(element, distance): a sprayed connection crosses several ports at one distance, whose shares
/// add up to all of it.
template <class F>
void for_each_distance(std::span<const MaxMin::Element> elements, const MaxMin& rates, F f) {
  double crossed = 0;
  std::int32_t distance = 0;
  for (const MaxMin::Element& element : elements) {
    f(element, distance);
    crossed += rates.coefficient(element);
    if (crossed > kAll) {
      crossed = 0;
      ++distance;
    }
  }
}

}  // namespace

CongestionLaw::CongestionLaw(const Topology& topology, const FlowOptions& options)
    : dcqcn_(options.transport->dcqcn),
      has_dcqcn_(options.transport->congestion == TransportTerms::Congestion::kDcqcn &&
                 options.transport->ecn),
      scale_window_(has_dcqcn_ && dcqcn_.scale_window),
      ack_first_(options.transport->ack_first),
      new_pairs_(options.fresh_ports),
      step_(has_dcqcn_ ? std::clamp(dcqcn_.decrease_interval / 2, Time::us(1), Time::us(5))
                       : Time::us(5)),
      packet_bits_(8 * static_cast<double>((options.payload + options.header).count())),
      ports_(2 * topology.links.size()),
      pfc_(topology, *options.transport, options.payload + options.header),
      rng_(options.transport->seed, "marks of switches") {
  const TransportTerms& transport = *options.transport;
  least_queue_ = pfc_.least();
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const Link& link = topology.links[i / 2];
    const Bandwidth rate = topology.class_of(LinkId(i / 2)).rate;
    Port& port = ports_[i];
    port.capacity = static_cast<double>(rate.bits_per_second());
    port.queues = topology.nodes[(i % 2 == 0 ? link.a : link.b).index()].kind == NodeKind::kSwitch;
    port.kmin = 8 * transport.kmin_per_gbps * port.capacity / 1e9;
    port.kmax = 8 * transport.kmax_per_gbps * port.capacity / 1e9;
    port.pmax = transport.pmax;
    for (const PacketOptions::EcnRow& row : transport.ecn_rows) {
      if (row.rate == rate) {
        port.kmin = 8 * static_cast<double>(row.kmin.count());
        port.kmax = 8 * static_cast<double>(row.kmax.count());
        port.pmax = row.pmax;
      }
    }
    if (has_dcqcn_ && port.queues) {
      least_queue_ = std::min(least_queue_, port.kmin);
    }
  }
}

void CongestionLaw::connect(ConnectionId connection, const Path& path) {
  if (flows_.size() <= connection.index()) {
    flows_.resize(connection.index() + 1);
  }
  Flow& flow = flows_[connection.index()];
  const double line = ports_[path.ports.front().constraint.index()].capacity;
  if (flow.line_rate != line) {
    flow.point = DcqcnPoint(line);
  }
  flow.line_rate = line;
  flow.window = 8 * static_cast<double>(path.window.window.count());
  flow.round_trip = path.window.round_trip.seconds();
  flow.way.clear();
  for (const MaxMin::Term& hop : path.ports) {
    if (hop.coefficient < 1) {
      flow.way.clear();
      return;
    }
    flow.way.push_back(hop.constraint.value);
  }
}

Time CongestionLaw::adjust(FluidNetwork& network, std::span<const VariableId> changed) {
  bool watch = next_ < Time::max();
  for (const VariableId id : changed) {
    Flow& flow = flows_[id.index()];
    if (!flow.active && network.is_draining(ConnectionId(id.value))) {
      flow.active = true;
      flow.began = network.now();
      active_.push_back(id.value);
    }
    watch = watch || (flow.active && (!flow.point.is_idle() || may_queue(network, id)));
  }
  const Time now = network.now();
  if (!watch) {
    if (active_.size() < shorten_at_) {
      return Time::max();
    }
    std::erase_if(active_, [&](std::int32_t id) {
      flows_[at(id)].active = network.is_draining(ConnectionId(id));
      return !flows_[at(id)].active;
    });
    shorten_at_ = 2 * active_.size() + kShort;
    return Time::max();
  }
  if (next_ == Time::max()) {
    last_ = now;  // queues begin
    next_ = now;
  }
  if (now >= next_) {
    measure(network);
    queue(network, (now - last_).seconds());
    last_ = now;
    next_ = control(network) ? now + step_ : Time::max();
  }
  return next_;
}

/// Whether those who share a port with it have windows for a queue that leads to anything.
bool CongestionLaw::may_queue(const FluidNetwork& network, VariableId id) const {
  const double most = std::min(flows_[id.index()].window, network.left(ConnectionId(id.value)));
  for (const MaxMin::Element& element : network.rates().elements(id)) {
    const auto users = network.rates().users(ConstraintId(element.constraint)).size();
    if (ports_[at(element.constraint)].queues && users > 1 &&
        static_cast<double>(users) * most > least_queue_) {
      return true;
    }
  }
  return false;
}

/// Where each transfer is a queue pair of its own, the next one knows nothing of the last one's
/// marks.
void CongestionLaw::begin_anew(const FluidNetwork& network, std::int32_t id) {
  Flow& flow = flows_[at(id)];
  const double left = network.left(ConnectionId(id));
  if (new_pairs_ && left > flow.left) {
    flow.point = DcqcnPoint(flow.line_rate);
    flow.began = network.now();
  }
  flow.left = left;
}

/// Load and level of the ports, and who is still under way.
void CongestionLaw::measure(const FluidNetwork& network) {
  ++stamp_;
  touched_.clear();
  std::erase_if(active_, [&](std::int32_t id) {
    Flow& flow = flows_[at(id)];
    flow.active = network.is_draining(ConnectionId(id));
    flow.waiting = flow.active ? flow.waiting : 0;
    return !flow.active;
  });
  for (const std::int32_t id : active_) {
    begin_anew(network, id);
    const double rate = network.rates().rate(VariableId(id));
    for (const MaxMin::Element& element : network.rates().elements(VariableId(id))) {
      Port& port = ports_[at(element.constraint)];
      if (port.stamp != stamp_) {
        port.earlier = port.stamp + 1 == stamp_ ? port.queue : 0;
        port.stamp = stamp_;
        touched_.push_back(element.constraint);
        port.capacity = network.rates().capacity(ConstraintId(element.constraint));
        port.users = 0;
        port.load = port.level = port.queue = port.passing = 0;
        port.waiting = 0;
        port.uneven = false;
      }
      ++port.users;
      port.load += rate * network.rates().coefficient(element);
      port.level = std::max(port.level, rate);
      port.uneven = port.uneven || !flows_[at(id)].point.is_idle();
    }
  }
}

/// Whether packets of a flow of this rate wait at a port, or go on to do so where they did. Where
/// some have slowed down, a queue lets its port's whole rate through even while the caps of a step
/// do not add up to that.
bool CongestionLaw::is_limiting(const Port& port, double rate, bool waits_here) const {
  if (!port.queues || (port.load < kFull * port.capacity && !(waits_here && port.uneven))) {
    return false;
  }
  return waits_here || rate >= kFull * port.level;
}

double CongestionLaw::window(const Flow& flow) const {
  return flow.window * (scale_window_ ? flow.point.rate() / flow.line_rate : 1);
}

/// How long its ACKs wait where they have no right of way: in the queues of what goes back over
/// the links of its way.
double CongestionLaw::ack_wait(const FluidNetwork& network, std::int32_t id) const {
  double wait = 0;
  for (const MaxMin::Element& element : network.rates().elements(VariableId(id))) {
    const Port& back = ports_[at(element.constraint ^ 1)];
    if (back.queues && back.stamp == stamp_) {
      wait += network.rates().coefficient(element) * back.earlier / back.capacity;
    }
  }
  return wait;
}

/// What a turn at each NIC comes to: those whose windows are full take what leaves the network,
/// those that have sent all take nothing, those that have slowed down their rate, all others the
/// same.
void CongestionLaw::share_nics(const FluidNetwork& network) {
  claims_.clear();
  for (const std::int32_t id : active_) {
    const Flow& flow = flows_[at(id)];
    const std::int32_t port = network.rates().elements(VariableId(id)).front().constraint;
    Port& nic = ports_[at(port)];
    nic.turn = nic.capacity / nic.users;
    double claim = has_dcqcn_ ? flow.point.rate() : flow.line_rate;
    if (flow.waiting > 0 && flow.waiting >= flow.room) {
      const bool has_sent_all = flow.left <= window(flow);
      claim = has_sent_all ? 0 : network.rates().rate(VariableId(id));
    }
    if (claim < nic.turn) {
      claims_.emplace_back(port, claim);
    }
  }
  std::ranges::sort(claims_);
  for (std::size_t i = 0; i < claims_.size();) {
    const std::int32_t port = claims_[i].first;
    Port& nic = ports_[at(port)];
    double left = nic.capacity;
    std::int32_t others = nic.users;
    for (; i < claims_.size() && claims_[i].first == port; ++i) {
      if (claims_[i].second * others < left) {
        left -= claims_[i].second;
        --others;
      }
    }
    nic.turn = others > 0 ? left / others : kNever;
  }
}

void CongestionLaw::queue(const FluidNetwork& network, double elapsed) {
  for (const std::int32_t id : active_) {
    Flow& flow = flows_[at(id)];
    flow.ack_wait = ack_first_ ? 0 : ack_wait(network, id);
    const double on_way = network.rates().rate(VariableId(id)) * (flow.round_trip + flow.ack_wait);
    flow.room = std::max(0.0, std::min(window(flow), flow.left) - on_way);
  }
  share_nics(network);
  for (const std::int32_t id : active_) {
    Flow& flow = flows_[at(id)];
    const double rate = network.rates().rate(VariableId(id));
    const auto elements = network.rates().elements(VariableId(id));
    double weight = 0;
    std::int32_t where = -1;
    const std::int32_t before = flow.waiting > 0 ? flow.queue_distance : -1;
    flow.queue_distance = -1;
    for_each_distance(elements, network.rates(),
                      [&](const MaxMin::Element& element, std::int32_t distance) {
                        if ((where < 0 || distance == flow.queue_distance) &&
                            is_limiting(ports_[at(element.constraint)], rate, distance == before)) {
                          weight += network.rates().coefficient(element);
                          where = element.constraint;
                          flow.queue_distance = distance;
                        }
                      });
    if (where < 0) {
      flow.waiting = std::max(0.0, flow.waiting - rate * elapsed);
    } else if (flow.waiting > flow.room) {
      flow.waiting = std::max(flow.room, flow.waiting - rate * elapsed);
    } else {
      Port& nic = ports_[at(elements.front().constraint)];
      const double offered = std::min(has_dcqcn_ ? flow.point.rate() : kNever, nic.turn);
      flow.waiting = std::clamp(flow.waiting + (offered - rate) * elapsed, 0.0, flow.room);
      nic.waiting += flow.waiting > 0 ? 1 : 0;
    }
    flow.queue_port = where;
    for_each_distance(elements, network.rates(),
                      [&](const MaxMin::Element& element, std::int32_t distance) {
                        Port& port = ports_[at(element.constraint)];
                        const double coefficient = network.rates().coefficient(element);
                        if (flow.waiting > 0 && distance == flow.queue_distance &&
                            is_limiting(port, rate, flow.waiting > 0)) {
                          port.queue += flow.waiting * coefficient / weight;
                        } else {
                          port.passing += rate * coefficient;
                        }
                      });
  }
}

/// Keeps what the queues are now.
void CongestionLaw::remember() {
  for (const std::int32_t id : touched_) {
    Port& port = ports_[at(id)];
    if (port.queues && (!port.history.empty() || port.queue > port.kmin)) {
      port.history.resize(kHistory);
      port.history[stamp_ % kHistory] = {stamp_, port.queue};
    }
  }
}

/// The probability of a mark so many steps ago.
double CongestionLaw::marked(const Port& port, std::uint32_t ago) const {
  if (port.history.empty()) {
    return 0;
  }
  const std::uint32_t when = stamp_ - ago;
  const Past& past = port.history[when % kHistory];
  if (past.stamp != when || past.queue <= port.kmin) {
    return 0;
  }
  return past.queue > port.kmax ? 1
                                : port.pmax * (past.queue - port.kmin) / (port.kmax - port.kmin);
}

/// Moves what the network cannot hold back to the senders; fills in the caps of PFC.
void CongestionLaw::couple(const FluidNetwork& network) {
  coupled_.clear();
  for (const std::int32_t id : active_) {
    const Flow& flow = flows_[at(id)];
    PfcCoupling::Flow& entry = coupled_.emplace_back();
    entry.way = flow.way;
    entry.rate = network.rates().rate(VariableId(id));
    entry.window = std::min(flow.window, network.size(ConnectionId(id)));
    entry.round_trip = flow.round_trip;
    entry.waiting = flow.waiting < packet_bits_ ? 0 : flow.waiting;  // less is no queue
    const auto found = std::ranges::find(flow.way, flow.queue_port);
    entry.hop = found == flow.way.end() ? -1 : static_cast<std::int32_t>(found - flow.way.begin());
    entry.cap = kNever;
    entry.here = flow.waiting;
  }
  if (pfc_.least() == kNever) {
    return;
  }
  pfc_.apply(coupled_);
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Flow& flow = flows_[at(active_[i])];
    if (coupled_[i].waiting <= 0) {
      coupled_[i].here = flow.waiting;
    } else if (coupled_[i].hop > 0) {
      ports_[at(flow.queue_port)].queue -= flow.waiting - coupled_[i].here;
      flow.waiting -= coupled_[i].unsent;
    }
  }
}

/// Rates and caps; whether anything is left to watch.
bool CongestionLaw::control(FluidNetwork& network) {
  couple(network);
  remember();
  bool watch = false;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const std::int32_t id = active_[i];
    Flow& flow = flows_[at(id)];
    const double rate = network.rates().rate(VariableId(id));
    const Time delay = Time::seconds(kReaction * flow.round_trip + flow.ack_wait);
    const double steps = std::round(delay.seconds() / step_.seconds());
    const auto ago = static_cast<std::uint32_t>(std::min(steps, double{kHistory - 1}));
    double marks = 0, weight = 0, turn = kNever;
    for_each_distance(
        network.rates().elements(VariableId(id)), network.rates(),
        [&](const MaxMin::Element& element, std::int32_t distance) {
          const Port& port = ports_[at(element.constraint)];
          const double coefficient = network.rates().coefficient(element);
          marks += coefficient * marked(port, ago);
          if (distance != flow.queue_distance || !is_limiting(port, rate, flow.waiting > 0)) {
            return;
          }
          weight += coefficient;
          if (flow.waiting > 0 && port.uneven && port.queue > 0) {
            turn = std::min(turn, std::max(kLeastShare, 1 - port.passing / port.capacity) *
                                      port.capacity * coupled_[i].here / port.queue);
          }
        });
    double cap = turn / std::max(weight, 1.0);
    if (has_dcqcn_) {
      const double sent = flow.waiting + rate * flow.round_trip;
      const bool is_told = network.now() - flow.began > delay && sent < flow.left;
      const double hazard = is_told ? std::min(1.0, marks) * rate / packet_bits_ : 0;
      flow.point.advance(dcqcn_, flow.line_rate, network.now(), hazard,
                         hazard > 0 ? rng_.uniform() : 1);
      cap = flow.waiting > 0 ? cap : flow.point.rate();
    }
    if (flow.waiting <= 0 && flow.ack_wait > 0 && flow.left > window(flow)) {
      cap = std::min(cap, window(flow) / (flow.round_trip + flow.ack_wait));
    }
    watch =
        watch || flow.waiting > 0 || !flow.point.is_idle() || may_queue(network, VariableId(id));
    const Port& nic = ports_[at(network.rates().elements(VariableId(id)).front().constraint)];
    if (!has_dcqcn_ && flow.waiting <= 0 && nic.waiting > 0 && nic.waiting < nic.users) {
      cap = std::min(cap, nic.turn);
    }
    cap = std::max(std::min(cap, coupled_[i].cap), kLeastShare * flow.line_rate);
    network.cap(ConnectionId(id), cap);
  }
  return watch;
}

}  // namespace lockstep
