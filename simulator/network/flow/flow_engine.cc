#include "simulator/network/flow/flow_engine.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr double kPsPerSecond = 1e12;
/// A flow is done when it has less than this part of its bits left, which is the error of what is
/// kept about it: flows that are equal but for the last bit of a rate end at one moment.
constexpr double kRounding = 1e-14;

}  // namespace

FlowEngine::FlowEngine(const Topology& topology, const FlowOptions& options)
    : paths_(topology, options), sent_bits_(2 * topology.links.size()) {
  for (std::size_t port = 0; port < sent_bits_.size(); ++port) {
    // A port without bandwidth carries nothing: PathFinder refuses routes over it.
    const double capacity = paths_.capacity(PortId(port));
    rates_.add_constraint(capacity > 0 ? capacity : 1);
  }
}

void FlowEngine::start(const FlowSpec& spec) {
  LOCKSTEP_CHECK(spec.start >= now_, "a flow starts now or later");
  const Bytes wire = paths_.wire_bytes(spec.bytes);
  const Path& path = paths_.next(spec.source, spec.destination, spec.channel);
  const VariableId id = rates_.add_variable(path.ports, MaxMin::kUnbounded, /*active=*/false);
  if (flows_.size() <= id.index()) {
    flows_.resize(id.index() + 1);
  }
  Flow& flow = flows_[id.index()];
  flow.order = next_order_++;
  flow.tag = spec.tag;
  flow.latency = paths_.latency(path, wire);
  flow.wire_bits = static_cast<double>(wire.count()) * 8;
  flow.left_bits = flow.wire_bits;
  flow.rate = 0;
  flow.state = State::kFuture;
  ++live_;
  if (spec.start == now_ && flow.wire_bits > 0) {
    begin(id);
  } else {
    starts_.push({spec.start, flow.order, id});
  }
}

Time FlowEngine::advance(Time limit, std::vector<NetworkEvent>& events) {
  while (true) {
    update_rates();
    const Time next = next_change();
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
    process_now();
    if (!happened_.empty()) {
      std::sort(happened_.begin(), happened_.end(), [](const Ordered& a, const Ordered& b) {
        return a.order != b.order ? a.order < b.order : a.event.kind < b.event.kind;
      });
      for (const Ordered& ordered : happened_) {
        events.push_back(ordered.event);
      }
      return now_;
    }
  }
}

void FlowEngine::update_rates() {
  for (const VariableId id : rates_.solve()) {
    Flow& flow = flows_[id.index()];
    flow.left_bits = flow.wire_bits - drained_bits(flow);
    flow.since = now_;
    flow.rate = rates_.rate(id);
    reschedule(id);
  }
  drop_stale_finishes();
}

double FlowEngine::drained_bits(const Flow& flow) const {
  const double since = static_cast<double>((now_ - flow.since).count_ps());
  const double left = flow.left_bits - flow.rate * since / kPsPerSecond;
  return flow.wire_bits - std::max(0.0, left);
}

/// A later end leaves the queued entry as it is: it is looked at again when its time comes.
void FlowEngine::reschedule(VariableId id) {
  Flow& flow = flows_[id.index()];
  const double bits = std::max(0.0, flow.left_bits - kRounding * flow.wire_bits);
  const double whole = std::ceil(bits * kPsPerSecond / flow.rate);
  const auto room = static_cast<double>((Time::max() - now_).count_ps());
  flow.end = whole < room ? now_ + Time::ps(static_cast<std::int64_t>(whole)) : Time::max();
  if (flow.end < flow.queued) {
    flow.queued = flow.end;
    finishes_.push({flow.end, id.value, ++flow.version});
  }
}

/// Keeps the heap in proportion to the flows when rates rise often.
void FlowEngine::drop_stale_finishes() {
  constexpr std::size_t kSlack = 1024;
  if (finishes_.size() > 2 * draining_ + kSlack) {
    finishes_.remove_if([&](const Finish& entry) {
      return entry.version != flows_[static_cast<std::size_t>(entry.flow)].version;
    });
  }
}

Time FlowEngine::next_change() {
  while (!finishes_.empty()) {
    const Finish entry = finishes_.top();
    Flow& flow = flows_[static_cast<std::size_t>(entry.flow)];
    if (entry.version == flow.version && entry.when == flow.end) {
      break;
    }
    finishes_.pop();
    if (entry.version == flow.version) {
      flow.queued = flow.end;
      if (flow.end < Time::max()) {
        finishes_.push({flow.end, entry.flow, entry.version});
      }
    }
  }
  Time next = Time::max();
  if (!finishes_.empty()) {
    next = std::min(next, finishes_.top().when);
  }
  if (!starts_.empty()) {
    next = std::min(next, starts_.top().when);
  }
  if (!deliveries_.empty()) {
    next = std::min(next, deliveries_.top().when);
  }
  return next;
}

void FlowEngine::process_now() {
  happened_.clear();
  while (!finishes_.empty() && finishes_.top().when == now_) {
    const Finish entry = finishes_.top();
    finishes_.pop();
    Flow& flow = flows_[static_cast<std::size_t>(entry.flow)];
    if (entry.version != flow.version) {
      continue;
    }
    if (flow.end == now_) {
      finish(VariableId(entry.flow));
    } else {
      flow.queued = flow.end;
      finishes_.push({flow.end, entry.flow, entry.version});
    }
  }
  while (!starts_.empty() && starts_.top().when == now_) {
    const VariableId id = starts_.top().flow;
    starts_.pop();
    begin(id);
  }
  while (!deliveries_.empty() && deliveries_.top().when == now_) {
    const Delivery& delivery = deliveries_.top();
    happened_.push_back(
        {delivery.order, {delivery.when, delivery.tag, NetworkEvent::Kind::kDelivered}});
    deliveries_.pop();
  }
}

void FlowEngine::begin(VariableId id) {
  Flow& flow = flows_[id.index()];
  flow.since = now_;
  flow.queued = Time::max();
  flow.state = State::kDraining;
  ++draining_;
  if (flow.wire_bits > 0) {
    rates_.activate(id);
  } else {
    finish(id);
  }
}

void FlowEngine::finish(VariableId id) {
  Flow& flow = flows_[id.index()];
  for (const MaxMin::Element& element : rates_.elements(id)) {
    sent_bits_[static_cast<std::size_t>(element.constraint)] +=
        flow.wire_bits * element.coefficient;
  }
  rates_.remove_variable(id);
  happened_.push_back({flow.order, {now_, flow.tag, NetworkEvent::Kind::kSent}});
  deliveries_.push({now_ + flow.latency, flow.order, flow.tag});
  flow.state = State::kNone;
  ++flow.version;  // whatever still stands in finishes_ is void
  --draining_;
  --live_;
}

std::vector<PortUse> FlowEngine::port_use() const {
  std::vector<double> bits = sent_bits_;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (flows_[i].state == State::kDraining) {
      const double drained = drained_bits(flows_[i]);
      for (const MaxMin::Element& element : rates_.elements(VariableId(i))) {
        bits[static_cast<std::size_t>(element.constraint)] += drained * element.coefficient;
      }
    }
  }
  std::vector<PortUse> use(bits.size());
  for (std::size_t port = 0; port < use.size(); ++port) {
    use[port].bytes = Bytes(std::llround(bits[port] / 8));
    use[port].busy = Time::seconds(bits[port] / rates_.capacity(ConstraintId(port)));
  }
  return use;
}

}  // namespace lockstep
