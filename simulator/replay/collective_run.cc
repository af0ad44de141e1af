#include "simulator/replay/collective_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/replay/switch_node.h"

namespace lockstep {
namespace {

/// Steps after which a ring over servers of 1, 2, 4 or 8 GPUs stands as before: each piece has
/// crossed as many links between servers as every other.
constexpr std::int32_t kPhase = 8;

/// Of a slot, or of a separate flow by the number of its connection.
constexpr std::uint64_t tag_of(std::int32_t run, std::uint32_t number) {
  return (static_cast<std::uint64_t>(run) << 32) | number;
}

}  // namespace

std::size_t CollectiveRuns::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t hash = 0x9E3779B97F4A7C15U;
  for (const std::int32_t part : {key.family, key.group, key.other, key.sequence}) {
    hash = (hash ^ static_cast<std::uint32_t>(part)) * 0xFF51AFD7ED558CCDU;
    hash ^= hash >> 32;
  }
  return hash;
}

CollectiveRuns::CollectiveRuns(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                               const Topology& topology, NetworkEngine& network,
                               const ScheduleSource& schedules, const ReplayOptions& options,
                               Finished finished, Early early, Paced paced)
    : work_(work),
      node_of_rank_(node_of_rank),
      topology_(topology),
      adjacency_(topology),
      network_(network),
      schedules_(work, node_of_rank, topology, schedules, options),
      options_(options),
      finished_(std::move(finished)),
      early_(std::move(early)),
      paced_(std::move(paced)) {}

CollectiveRuns::Key CollectiveRuns::key_of(std::int32_t rank, const ProgramOp& op) const {
  if (op.family < 0) {
    return {-1, op.send ? rank : op.peer, op.send ? op.peer : rank, op.sequence};
  }
  const CommFamily& family = work_.families[static_cast<std::size_t>(op.family)];
  if (op.comm == CommType::kSendRecv && op.peer >= 0) {
    const auto& members = family.groups()[static_cast<std::size_t>(family.group_of(rank))];
    const std::int32_t place =
        (family.place_of(rank) + op.peer) % static_cast<std::int32_t>(members.size());
    const std::int32_t other = members[static_cast<std::size_t>(place)];
    return {-2 - op.family, op.send ? rank : other, op.send ? other : rank, op.sequence};
  }
  return {op.family, family.group_of(rank), 0, op.sequence};
}

std::int32_t CollectiveRuns::place_of(const Key& key, std::int32_t rank) const {
  if (key.family < 0) {
    return rank == key.group ? 0 : 1;
  }
  return work_.families[static_cast<std::size_t>(key.family)].place_of(rank);
}

std::vector<std::int32_t> CollectiveRuns::members_of(const Key& key) const {
  if (key.family < 0) {
    return {key.group, key.other};
  }
  return work_.families[static_cast<std::size_t>(key.family)]
      .groups()[static_cast<std::size_t>(key.group)];
}

std::shared_ptr<const Schedule> CollectiveRuns::schedule_of(const Key& key, const ProgramOp& op) {
  return schedules_.of(op, key.family, key.group, members_of(key))->schedule;
}

NodeId CollectiveRuns::node_of(const Schedule& schedule, const std::vector<std::int32_t>& members,
                               std::int32_t place) const {
  const auto rank_at = [&](std::int32_t member) {
    return node_of_rank_[static_cast<std::size_t>(members[static_cast<std::size_t>(member)])];
  };
  if (place < schedule.ranks) {
    return rank_at(place);
  }
  const SwitchPlace& place_of_switch =
      schedule.switches[static_cast<std::size_t>(place - schedule.ranks)];
  return switch_node(topology_, adjacency_, rank_at(place_of_switch.near), place_of_switch);
}

/// Whether each transfer of a slot needs a connection of its own, as the network's carry one after
/// the other.
bool CollectiveRuns::has_connection_each(const Schedule& schedule) const {
  return schedule.separate_flows && !network_.carries_messages();
}

/// Whether flows wait in the network, so that one may overtake another.
bool CollectiveRuns::queues(const Schedule& schedule) const {
  return schedule.separate_flows && network_.has_queues();
}

/// Makes the first so many connections, in order of their numbers. Those of a group are made once
/// and used by all its collectives of this kind.
void CollectiveRuns::connect(Run& run, std::size_t connections) {
  const Schedule& schedule = *run.prepared->schedule;
  std::vector<ConnectionId>& known = *run.connections;
  run.connected = std::max(run.connected, connections);
  if (known.size() >= connections) {
    return;
  }
  std::int32_t traffic_class = -1;
  if (options_.traffic_class) {
    const std::int32_t family = run.key.family >= 0 ? run.key.family : -2 - run.key.family;
    const bool pipeline = family < 0;  // from one stage to the next
    traffic_class = options_.traffic_class(
        pipeline ? GroupKind::kPp : work_.families[static_cast<std::size_t>(family)].kind(),
        run.comm, run.members->front());
  }
  while (known.size() < connections) {
    const Slot& slot = schedule.slots[known.size() % schedule.slots.size()];
    known.push_back(network_.connect_in_class(node_of(schedule, *run.members, slot.source),
                                              node_of(schedule, *run.members, slot.destination),
                                              slot.channel, traffic_class));
  }
}

/// Chunk q of an all-to-all is what rank q / n sends to rank q mod n.
void CollectiveRuns::make_uneven(Run& run, const ProgramOp& op) const {
  run.uneven.reset();
  if (!options_.loads || op.comm != CommType::kAllToAll || op.family < 0) {
    return;
  }
  const std::vector<double> loads = options_.loads(op, run.key.group);
  if (loads.empty()) {
    return;
  }
  Schedule& schedule = run.uneven.emplace(*run.prepared->schedule);
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  LOCKSTEP_CHECK(loads.size() == ranks, "every rank of the group has a load");
  schedule.chunk_sizes.resize(static_cast<std::size_t>(schedule.chunks));
  for (std::size_t q = 0; q < schedule.chunk_sizes.size(); ++q) {
    const double load = loads[op.returns ? q / ranks : q % ranks];
    schedule.chunk_sizes[q] =
        Bytes(std::llround(static_cast<double>(schedule.chunk_bytes.count()) * load));
  }
}

std::int32_t CollectiveRuns::open_run(const Key& key, const ProgramOp& op) {
  std::int32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::int32_t>(runs_.size());
    runs_.push_back(std::make_unique<Run>());
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Run& run = *runs_[static_cast<std::size_t>(index)];
  run.key = key;
  run.comm = op.comm;
  run.bytes = op.bytes;
  if (key.family < 0) {
    run.pair = {key.group, key.other};
    run.members = &run.pair;
  } else {
    run.members = &work_.families[static_cast<std::size_t>(key.family)]
                       .groups()[static_cast<std::size_t>(key.group)];
  }
  run.prepared = schedules_.of(op, key.family, key.group, *run.members);
  run.op.assign(run.members->size(), -1);
  run.shares = run.prepared->shares;
  make_uneven(run, op);
  run.bytes_each = run.uneven ? Bytes(-1) : run.prepared->bytes_each;
  run.slots.assign(run.prepared->schedule->slots.size(), {});
  run.connections = &run.prepared->connections[{key.family, key.group, key.other}];
  run.overtook.clear();
  run.unfinished = static_cast<std::int32_t>(run.members->size());
  run.left_out = 0;
  run.sure = 0;
  run.counted.clear();
  const Schedule& schedule = *run.prepared->schedule;
  if (options_.reduce_latency > Time() && queues(schedule)) {
    run.counted.resize(run.members->size());
  }
  run.pace.reset();
  constexpr std::int32_t kManySteps = 48;
  if (paced_ && run.prepared->steps >= kManySteps) {
    run.pace.emplace(static_cast<std::int32_t>(run.slots.size()), run.prepared->steps);
  }
  run.connected = 0;
  const bool each = run.connects_each = has_connection_each(schedule);
  run.queues = network_.has_queues();
  if (!each || !run.pace) {  // those of steps that may be left out wait
    connect(run, run.slots.size() * (each ? static_cast<std::size_t>(run.prepared->steps) : 1));
  }
  if (schedule.separate_flows && !each) {
    network_.draw_ports(*run.connections, run.prepared->steps);
  }
  return index;
}

void CollectiveRuns::enter(std::int32_t rank, std::int32_t op_index, Time now) {
  const ProgramOp& op = work_.program(rank).ops()[static_cast<std::size_t>(op_index)];
  const Key key = key_of(rank, op);
  LOCKSTEP_CHECK(key.group >= 0, "a rank uses only communicators it belongs to");
  if (key.family >= 0 && work_.families[static_cast<std::size_t>(key.family)]
                                 .groups()[static_cast<std::size_t>(key.group)]
                                 .size() < 2) {
    finished_(rank, op_index, now);
    return;
  }
  const auto [found, is_new] = open_.try_emplace(key, -1);
  if (is_new) {
    found->second = open_run(key, op);
  }
  const std::int32_t index = found->second;
  Run& run = *runs_[static_cast<std::size_t>(index)];
  if (run.comm != op.comm || run.bytes != op.bytes) {
    disagree(run, rank, op_index);
  }
  const std::int32_t place = place_of(key, rank);
  run.op[static_cast<std::size_t>(place)] = op_index;
  run.moved = op.sets_off() ? now : run.moved;
  start_from(index, place, now);
  if (run.shares[static_cast<std::size_t>(place)] == 0) {
    ++run.shares[static_cast<std::size_t>(place)];
    share_done(index, place);
  }
}

/// Starts what a place may send: what waits for nothing, and whose data came before it entered.
void CollectiveRuns::start_from(std::int32_t run_index, std::int32_t place, Time now) {
  const PreparedSchedule& prepared = *runs_[static_cast<std::size_t>(run_index)]->prepared;
  const auto begin = static_cast<std::size_t>(prepared.from_begin[static_cast<std::size_t>(place)]);
  const auto end =
      static_cast<std::size_t>(prepared.from_begin[static_cast<std::size_t>(place) + 1]);
  for (std::size_t i = begin; i < end; ++i) {
    start_ready(run_index, prepared.from[i], now);
  }
}

/// Starts the slot's next transfers as far as what they wait for has arrived.
void CollectiveRuns::start_ready(std::int32_t run_index, std::int32_t slot_index, Time now) {
  Run& run = *runs_[static_cast<std::size_t>(run_index)];
  const Schedule& schedule = *run.prepared->schedule;
  const auto i = static_cast<std::uint32_t>(slot_index);
  const Slot& slot = schedule.slots[i];
  SlotState& state = run.slots[i];
  const auto waits = schedule.waits(i);
  for (; state.started < slot.count - run.left_out; ++state.started) {
    bool forwards = false;
    for (const SlotWait& wait : waits) {
      const auto other = static_cast<std::size_t>(wait.slot);
      const std::int32_t needed =
          wait.needed(state.started, schedule.slots[other].count - run.left_out);
      if (run.slots[other].delivered < needed) {
        return;
      }
      forwards = forwards || needed > 0;
    }
    if (schedule.separate_flows) {
      now = std::max(now, state.earliest);  // what comes before there is a receive for it waits
    }
    Time when = now + schedule.start_latency(slot, options_.send_latency);
    if (!forwards) {
      when += schedule.launch_latency();
    }
    const Time memory = memory_time(run, slot, forwards);
    when += memory;
    std::size_t connection = i;
    std::uint32_t number = i;
    if (schedule.separate_flows) {
      number += static_cast<std::uint32_t>(state.started * std::ssize(run.slots));
      connection = run.connects_each ? number : connection;
      state.earliest = run.queues ? now + memory + options_.receive_latency : Time();
    } else {  // a connection is first in, first out, also where a kernel has to start first
      when = std::max(when, state.earliest);
      state.earliest = when;
    }
    if (connection >= run.connected) {
      connect(run, (connection / run.slots.size() + 1) * run.slots.size());
    }
    const Schedule& sizes = run.uneven ? *run.uneven : schedule;
    const Bytes bytes =
        run.bytes_each >= Bytes() ? run.bytes_each : sizes.bytes(slot, state.started);
    network_.start((*run.connections)[connection], bytes, when, tag_of(run_index, number));
    ++transfers_;
  }
}

/// SimAI's memory accesses before a transfer. Where it takes steps in order it counts, per rank and
/// channel, transfers in cycles as long as the group: the first of each is free, and turns over a
/// switch that the rank has for all its channels; the others cost, of an all-reduce only while
/// the switch is on.
Time CollectiveRuns::memory_time(Run& run, const Slot& slot, bool forwards) const {
  const bool reduces = run.comm == CommType::kReduceScatter;
  if (run.counted.empty()) {
    return forwards && reduces ? options_.reduce_latency : Time();
  }
  Counted& counted = run.counted[static_cast<std::size_t>(slot.source)];
  const auto channel = static_cast<std::size_t>(slot.channel);
  if (counted.started.size() <= channel) {
    counted.started.resize(channel + 1, 0);
  }
  const bool first = counted.started[channel] == 0;
  const bool last = ++counted.started[channel] == run.prepared->schedule->ranks;
  counted.started[channel] = last ? 0 : counted.started[channel];
  counted.adding = counted.adding != first;
  const bool adds = reduces || (run.comm == CommType::kAllReduce && counted.adding);
  return !first && adds ? options_.reduce_latency : Time();
}

/// Moments at which no rank finishes concern nobody else, unless somebody counts them or asks in
/// between.
Time CollectiveRuns::advance(Time limit) {
  const ReplayLimits& limits = options_.limits;
  const bool alone =
      !paced_ && !limits.stop && limits.most_work == 0 && limits.latest == Time::max();
  events_.clear();
  Time now = network_.advance(limit, events_);
  for (; alone && now < limit && happened() && nobody_finishes(); ++passed_) {
    dispatch(now);
    events_.clear();
    now = network_.advance(limit, events_);
  }
  return now;
}

/// Whether that is sure of what happens now.
bool CollectiveRuns::nobody_finishes() {
  const std::int64_t most = std::ssize(events_);
  return std::ranges::all_of(events_, [&](const NetworkEvent& event) {
    Run& run = *runs_[event.tag >> 32];
    return run.sure > most || (run.sure >= 0 && count_sure(run) > most);
  });
}

/// Where few are sure they are not counted again, so that counting stays O(1) an event.
std::int64_t CollectiveRuns::count_sure(Run& run) {
  run.sure = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t left : run.shares) {
    run.sure = left > 0 ? std::min(run.sure, left - 1) : run.sure;
  }
  run.sure = run.sure < std::ssize(run.shares) ? -1 : run.sure;
  return run.sure;
}

void CollectiveRuns::dispatch(Time now) {
  for (const NetworkEvent& event : events_) {
    handle(event, now);
  }
}

void CollectiveRuns::handle(const NetworkEvent& event, Time now) {
  const auto run_index = static_cast<std::int32_t>(event.tag >> 32);
  const auto number = static_cast<std::uint32_t>(event.tag);
  Run& run = *runs_[static_cast<std::size_t>(run_index)];
  const PreparedSchedule& prepared = *run.prepared;
  const auto slots = static_cast<std::uint32_t>(run.slots.size());
  const bool is_separate = prepared.schedule->separate_flows;
  const std::uint32_t i = is_separate ? number % slots : number;
  const Slot& slot = prepared.schedule->slots[i];
  if (event.kind == NetworkEvent::Kind::kSent) {
    __builtin_prefetch(&run.slots[i]);  // for its delivery
    __builtin_prefetch(&prepared.waiter_begin[i]);
    if (slot.source < prepared.schedule->ranks) {
      share_done(run_index, slot.source);
    }
    return;
  }
  SlotState& state = run.slots[i];
  const std::int32_t transfer =
      is_separate ? static_cast<std::int32_t>(number / slots) : state.delivered;
  if (run.pace && run.pace->add(transfer, now) && run.pace->made() % kPhase == 0) {
    leave_out(run);
  }
  if (transfer > state.delivered) {
    run.overtook.insert(number);
  } else {
    ++state.delivered;
    for (std::uint32_t next = number + slots; !run.overtook.empty() && run.overtook.erase(next) > 0;
         next += slots) {
      ++state.delivered;
    }
  }
  const auto begin = static_cast<std::size_t>(prepared.waiter_begin[i]);
  const auto end = static_cast<std::size_t>(prepared.waiter_begin[i + 1]);
  for (std::size_t w = begin; w < end; ++w) {
    const std::int32_t next = prepared.waiter[w];
    const std::int32_t source = prepared.schedule->slots[static_cast<std::size_t>(next)].source;
    if (source >= prepared.schedule->ranks || run.op[static_cast<std::size_t>(source)] >= 0) {
      start_ready(run_index, next, now);
    }
  }
  if (slot.destination < prepared.schedule->ranks) {
    share_done(run_index, slot.destination);
  }
}

/// Asks whether the rest may be taken at the pace so far.
void CollectiveRuns::leave_out(Run& run) {
  const PreparedSchedule& prepared = *run.prepared;
  const std::int32_t begun = std::ranges::max(run.slots, {}, &SlotState::started).started;
  const std::int32_t left = prepared.steps - begun;
  const std::int32_t whole = (left - 1) / kPhase * kPhase;
  const std::int32_t steps = whole > 0 ? paced_(run.key, *run.pace, whole) : 0;
  if (steps == 0) {
    return;
  }
  run.left_out = steps;
  run.pace.reset();
  const Schedule& schedule = *prepared.schedule;
  for (const Slot& slot : schedule.slots) {
    for (const std::int32_t place : {slot.source, slot.destination}) {
      if (place < schedule.ranks) {
        run.shares[static_cast<std::size_t>(place)] -= steps;
      }
    }
  }
}

void CollectiveRuns::share_done(std::int32_t run_index, std::int32_t place) {
  Run& run = *runs_[static_cast<std::size_t>(run_index)];
  --run.sure;
  if (--run.shares[static_cast<std::size_t>(place)] > 0) {
    return;
  }
  if (run.op[static_cast<std::size_t>(place)] < 0) {
    if (early_) {
      early_(run.key, place);
    }
    return;
  }
  const std::int32_t rank = (*run.members)[static_cast<std::size_t>(place)];
  const std::int32_t op = run.op[static_cast<std::size_t>(place)];
  const Time moved = run.moved;
  if (--run.unfinished == 0) {
    open_.erase(run.key);
    free_.push_back(run_index);
  }
  finished_(rank, op, moved);
}

std::vector<std::int32_t> CollectiveRuns::missing(std::int32_t rank, std::int32_t op) const {
  std::vector<std::int32_t> ranks;
  const Key key = key_of(rank, work_.program(rank).ops()[static_cast<std::size_t>(op)]);
  const auto found = open_.find(key);
  if (found == open_.end()) {
    return ranks;
  }
  const Run& run = *runs_[static_cast<std::size_t>(found->second)];
  for (std::size_t place = 0; place < run.op.size(); ++place) {
    if (run.op[place] < 0) {
      ranks.push_back((*run.members)[place]);
    }
  }
  return ranks;
}

std::vector<StuckMessage> CollectiveRuns::stuck() const {
  std::vector<StuckMessage> messages;
  for (const StuckTransfer& transfer : network_.stuck()) {
    const Run& run = *runs_[static_cast<std::size_t>(transfer.tag >> 32)];
    const Schedule& schedule = *run.prepared->schedule;
    const std::size_t number = transfer.tag & 0xFFFFFFFFU;
    const Slot& slot = schedule.slots[number % schedule.slots.size()];
    const auto member = [&](std::int32_t place) {
      return place < schedule.ranks
                 ? place
                 : schedule.switches[static_cast<std::size_t>(place - schedule.ranks)].near;
    };
    const bool between_ranks = std::max(slot.source, slot.destination) < schedule.ranks;
    const auto one = static_cast<std::size_t>(
        member(slot.source < schedule.ranks ? slot.source : slot.destination));
    const Link& link = topology_.links[transfer.link.index()];
    messages.push_back(
        {(*run.members)[one],
         run.op[one],
         between_ranks ? (*run.members)[static_cast<std::size_t>(slot.destination)] : -1,
         {link.a, link.b},
         transfer.since});
  }
  return messages;
}

void CollectiveRuns::disagree(const Run& run, std::int32_t rank, std::int32_t op) const {
  std::int32_t other = -1, other_op = -1;
  for (std::size_t place = 0; place < run.op.size(); ++place) {
    if (run.op[place] >= 0) {
      other = (*run.members)[place];
      other_op = run.op[place];
    }
  }
  const auto describe = [&](std::int32_t r, std::int32_t o) {
    const ProgramOp& what = work_.program(r).ops()[static_cast<std::size_t>(o)];
    return fmt::format("rank {} does {} of {} ({})", r, name_of(what.comm), to_text(what.bytes),
                       options_.op_name ? options_.op_name(r, o) : std::to_string(o));
  };
  throw Error(fmt::format("the ranks of a group disagree about communication {}: {}, {}",
                          run.key.sequence + 1, describe(other, other_op), describe(rank, op)))
      .expected("the same communications of the same size, in the same order, on all its ranks");
}

}  // namespace lockstep
