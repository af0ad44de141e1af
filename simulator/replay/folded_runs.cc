#include "simulator/replay/folded_runs.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

FoldedNetwork::FoldedNetwork(const StepFold& fold, const Topology& topology)
    : fold_(fold), topology_(topology) {
  for (const double capacity : fold.graph.capacity) {
    network_.add_constraint(capacity);
  }
  for (std::size_t slot = 0; slot < fold.graph.slots.size(); ++slot) {
    network_.connect(fold.graph.terms(slot));
  }
}

ConnectionId FoldedNetwork::connect(NodeId, NodeId, std::int32_t) {
  LOCKSTEP_CHECK(false, "a folded network's connections are its slots");
}

void FoldedNetwork::start(ConnectionId connection, Bytes, Time when, std::uint64_t tag) {
  const FlowGraph::Slot& slot = fold_.graph.slots[connection.index()];
  network_.start(connection, slot.bits, slot.latency, when, tag);
}

std::vector<PortUse> FoldedNetwork::port_use() const {
  std::vector<double> bits(2 * topology_.links.size());
  for (std::size_t i = 0; i < fold_.slot_of.size(); ++i) {
    const double carried = network_.carried_bits(ConnectionId(fold_.slot_of[i]));
    for (auto hop = static_cast<std::size_t>(fold_.hop_begin[i]);
         hop < static_cast<std::size_t>(fold_.hop_begin[i + 1]); ++hop) {
      bits[at(fold_.hops[hop].port)] += carried * static_cast<double>(fold_.hops[hop].share);
    }
  }
  std::vector<PortUse> use(bits.size());
  for (std::size_t port = 0; port < use.size(); ++port) {
    use[port].bytes = Bytes(std::llround(bits[port] / 8));
    const Bandwidth rate = topology_.class_of(LinkId(port / 2)).rate;
    if (bits[port] > 0) {
      use[port].busy = Time::seconds(bits[port] / static_cast<double>(rate.bits_per_second()));
    }
  }
  return use;
}

FoldedRuns::FoldedRuns(const RankPrograms& work, const StepFold& fold, NetworkEngine& network,
                       Finished finished)
    : work_(work), fold_(fold), network_(network), finished_(std::move(finished)) {
  std::vector<std::int32_t> local_of(fold.graph.slots.size());
  for (std::size_t c = 0; c < fold.communicators.size(); ++c) {
    const auto& slots = fold.communicators[c].slots;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      local_of[at(slots[i])] = static_cast<std::int32_t>(i);
    }
    std::vector<LocalSlot>& local = local_.emplace_back(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const FlowGraph::Slot& slot = fold.graph.slots[at(slots[i])];
      const auto communicator = static_cast<std::int32_t>(c);
      local[i].source = slot.source < 0 ? -1 : place_of(communicator, slot.source);
      local[i].destination = slot.destination < 0 ? -1 : place_of(communicator, slot.destination);
      for (const SlotWait& wait : fold.graph.waits(at(slots[i]))) {
        const std::int32_t other = local_of[at(wait.slot)];
        local[i].waits.push_back({other, wait.lag});
        local[at(other)].waiters.push_back(static_cast<std::int32_t>(i));
      }
    }
  }
}

std::int32_t FoldedRuns::place_of(std::int32_t communicator, std::int32_t of_class) const {
  const auto& classes = fold_.communicators[at(communicator)].classes;
  return static_cast<std::int32_t>(std::ranges::lower_bound(classes, of_class) - classes.begin());
}

void FoldedRuns::enter(std::int32_t rank, std::int32_t op_index, Time now) {
  const std::int32_t of_class = fold_.class_of_rank[at(rank)];
  const std::int32_t communicator = fold_.communicator_of[at(of_class)][at(op_index)];
  if (communicator < 0) {
    finished_(rank, op_index);
    return;
  }
  const StepFold::Communicator& what = fold_.communicators[at(communicator)];
  const std::int32_t sequence = work_.program(rank).ops()[at(op_index)].sequence;
  const auto [found, is_new] = open_.try_emplace({communicator, sequence}, -1);
  if (is_new) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::int32_t>(runs_.size()));
      runs_.emplace_back();
    }
    found->second = free_.back();
    free_.pop_back();
    Run& run = runs_[at(found->second)];
    run.communicator = communicator;
    run.sequence = sequence;
    run.op.assign(what.classes.size(), -1);
    run.shares = what.shares;
    run.slots.assign(what.slots.size(), {});
    run.unfinished = static_cast<std::int32_t>(what.classes.size());
  }
  const std::int32_t index = found->second;
  const std::int32_t place = place_of(communicator, of_class);
  runs_[at(index)].op[at(place)] = op_index;
  const std::vector<LocalSlot>& local = local_[at(communicator)];
  for (std::size_t slot = 0; slot < local.size(); ++slot) {
    if (local[slot].source == place) {
      start_ready(index, static_cast<std::int32_t>(slot), now);
    }
  }
  if (runs_[at(index)].shares[at(place)] == 0) {
    share_done(index, place, 0);
  }
}

/// Starts the slot's next transfers as far as what they wait for has arrived.
void FoldedRuns::start_ready(std::int32_t run_index, std::int32_t slot_index, Time now) {
  Run& run = runs_[at(run_index)];
  const StepFold::Communicator& what = fold_.communicators[at(run.communicator)];
  const std::int32_t global = what.slots[at(slot_index)];
  const FlowGraph::Slot& slot = fold_.graph.slots[at(global)];
  const std::vector<LocalSlot>& local = local_[at(run.communicator)];
  SlotState& state = run.slots[at(slot_index)];
  for (; state.started < slot.count; ++state.started) {
    bool forwards = false;
    for (const SlotWait& wait : local[at(slot_index)].waits) {
      const std::int32_t needed =
          wait.needed(state.started, fold_.graph.slots[at(what.slots[at(wait.slot)])].count);
      if (run.slots[at(wait.slot)].delivered < needed) {
        return;
      }
      forwards = forwards || needed > 0;
    }
    network_.start(
        ConnectionId(global), Bytes(), now + (forwards ? slot.forward_latency : slot.start_latency),
        static_cast<std::uint64_t>(run_index) << 32 | static_cast<std::uint32_t>(slot_index));
    transfers_ += slot.copies;
  }
}

void FoldedRuns::handle(const NetworkEvent& event, Time now) {
  const auto run_index = static_cast<std::int32_t>(event.tag >> 32);
  const auto slot_index = static_cast<std::int32_t>(event.tag & 0xFFFFFFFFU);
  const std::int32_t communicator = runs_[at(run_index)].communicator;
  const LocalSlot& local = local_[at(communicator)][at(slot_index)];
  const StepFold::Ends& ends =
      fold_.ends[at(fold_.communicators[at(communicator)].slots[at(slot_index)])];
  if (event.kind == NetworkEvent::Kind::kSent) {
    if (local.source >= 0) {
      share_done(run_index, local.source, ends.leave);
    }
    return;
  }
  ++runs_[at(run_index)].slots[at(slot_index)].delivered;
  for (const std::int32_t next : local.waiters) {
    const std::int32_t source = local_[at(communicator)][at(next)].source;
    if (source < 0 || runs_[at(run_index)].op[at(source)] >= 0) {
      start_ready(run_index, next, now);
    }
  }
  if (local.destination >= 0) {
    share_done(run_index, local.destination, ends.reach);
  }
}

void FoldedRuns::share_done(std::int32_t run_index, std::int32_t place, std::int32_t count) {
  Run& run = runs_[at(run_index)];
  run.shares[at(place)] -= count;
  if (run.shares[at(place)] > 0 || run.op[at(place)] < 0) {
    return;
  }
  const std::int32_t op = run.op[at(place)];
  const std::int32_t of_class = fold_.communicators[at(run.communicator)].classes[at(place)];
  if (--run.unfinished == 0) {
    open_.erase({run.communicator, run.sequence});
    free_.push_back(run_index);
  }
  finished_(fold_.representative[at(of_class)], op);
}

std::vector<std::int32_t> FoldedRuns::missing(std::int32_t rank, std::int32_t op) const {
  std::vector<std::int32_t> ranks;
  const std::int32_t of_class = fold_.class_of_rank[at(rank)];
  const std::int32_t communicator = fold_.communicator_of[at(of_class)][at(op)];
  const auto found = open_.find({communicator, work_.program(rank).ops()[at(op)].sequence});
  if (found == open_.end()) {
    return ranks;
  }
  const Run& run = runs_[at(found->second)];
  for (std::size_t place = 0; place < run.op.size(); ++place) {
    if (run.op[place] < 0) {
      ranks.push_back(
          fold_.representative[at(fold_.communicators[at(communicator)].classes[place])]);
    }
  }
  return ranks;
}

}  // namespace lockstep
