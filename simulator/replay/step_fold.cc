#include "simulator/replay/step_fold.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "base/error.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/single_ways.h"
#include "simulator/replay/switch_node.h"
#include "simulator/replay/symmetry.h"

namespace lockstep {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

bool is_pair(const ProgramOp& op) { return op.family < 0 || op.peer >= 0; }

/// What connections of one sort have in common. For pairs `send` and `peer` matter.
using Kind = std::tuple<std::int32_t, CommType, Bytes, bool, std::int32_t>;

Kind kind_of(const ProgramOp& op) {
  return is_pair(op) ? Kind{op.family, op.comm, op.bytes, op.send, op.peer}
                     : Kind{op.family, op.comm, op.bytes, false, -1};
}

/// A collective or pair whose connections are to be laid out.
struct Unit {
  std::shared_ptr<const Schedule> schedule;
  FlowGraphBuilder::Setting setting;
  std::int32_t first_slot = -1;  // once it is; -1 as well where nobody sends
  bool is_pair = false;
};

/// All collectives and pairs that the step's programs use.
class Units {
 public:
  Units(const RankPrograms& work, const std::vector<NodeId>& node_of_rank, const Topology& topology,
        const ScheduleSource& schedules, const ReplayOptions& options)
      : work_(work),
        node_of_rank_(node_of_rank),
        topology_(topology),
        adjacency_(topology),
        schedules_(schedules),
        options_(options) {
    for (const Program& program : work.programs) {
      std::map<Kind, std::int32_t> seen;
      std::vector<Kind>& kinds = kinds_.emplace_back();
      std::vector<std::int32_t>& of_op = kind_of_op_.emplace_back();
      for (const ProgramOp& op : program.ops()) {
        of_op.push_back(-1);
        if (op.comm != CommType::kNone) {
          const auto next = static_cast<std::int32_t>(kinds.size());
          const auto [known, is_new] = seen.try_emplace(kind_of(op), next);
          of_op.back() = known->second;
          if (is_new) {
            kinds.push_back(known->first);
          }
        }
      }
    }
  }

  const std::vector<Kind>& kinds(std::int32_t rank) const {
    return kinds_[at(work_.program_of_rank[at(rank)])];
  }
  std::vector<std::vector<std::int32_t>>& kind_of_op() { return kind_of_op_; }
  /// Of all connections, in their units' order.
  std::vector<Way> ways() const {
    std::vector<Way> ways;
    for (const Unit& unit : units_) {
      for (const Slot& slot : unit.schedule->slots) {
        ways.push_back({unit.setting.nodes[at(slot.source)],
                        unit.setting.nodes[at(slot.destination)], slot.channel});
      }
    }
    return ways;
  }
  std::vector<Unit>& units() { return units_; }
  const std::vector<Unit>& units() const { return units_; }

  /// The unit of a rank's communication of some kind; -1 where it is alone in its group.
  std::int32_t unit_of(std::int32_t rank, const Kind& kind) const {
    const auto found = unit_.find(key_of(rank, kind));
    return found == unit_.end() ? -1 : found->second;
  }

  /// Appends a rank's unit if it is new. False where it cannot be folded.
  bool add(std::int32_t rank, const Kind& kind) {
    const Key key = key_of(rank, kind);
    if (unit_.contains(key)) {
      return true;
    }
    const auto [family, comm, bytes, send, peer] = kind;
    std::vector<std::int32_t> members;
    if (family >= 0 && peer < 0) {
      members = work_.families[at(family)].groups()[at(std::get<1>(key))];
    } else {
      members = {std::get<1>(key), std::get<2>(key)};
    }
    if (members.size() < 2) {
      return true;
    }
    FlowGraphBuilder::Setting setting;
    std::vector<std::int32_t> servers;
    for (const std::int32_t member : members) {
      setting.nodes.push_back(node_of_rank_[at(member)]);
      servers.push_back(topology_.nodes[setting.nodes.back().index()].server);
    }
    const bool tensor = options_.tensor_schedules && family >= 0 &&
                        work_.families[at(family)].kind() == GroupKind::kTp;
    const ScheduleSource& source = tensor ? options_.tensor_schedules : schedules_;
    std::shared_ptr<const Schedule> schedule = source(comm, bytes, group_shape(servers));
    if (!schedule->chunk_sizes.empty()) {
      return false;
    }
    for (const SwitchPlace& place : schedule->switches) {
      setting.nodes.push_back(
          switch_node(topology_, adjacency_, setting.nodes[at(place.near)], place));
    }
    setting.places = std::move(members);
    setting.send_latency = options_.send_latency;
    setting.forward_latency = comm == CommType::kReduceScatter ? options_.reduce_latency : Time();
    const auto number = static_cast<std::int32_t>(kind_number_.size());
    setting.kind =
        kind_number_
            .try_emplace({family, comm, bytes, false, which_pair(setting.places[0], kind)}, number)
            .first->second;
    unit_.emplace(key, static_cast<std::int32_t>(units_.size()));
    units_.push_back({std::move(schedule), std::move(setting), -1, family < 0 || peer >= 0});
    return true;
  }

 private:
  /// Family, group or sender, receiver, kind number.
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, CommType, Bytes>;

  Key key_of(std::int32_t rank, const Kind& kind) const {
    const auto [family, comm, bytes, send, peer] = kind;
    if (family >= 0 && peer < 0) {
      return {family, work_.families[at(family)].group_of(rank), -1, comm, bytes};
    }
    const std::int32_t other = family < 0 ? peer : other_of(rank, family, peer);
    return {family < 0 ? -1 : -2 - family, send ? rank : other, send ? other : rank, comm, bytes};
  }

  std::int32_t other_of(std::int32_t rank, std::int32_t family, std::int32_t peer) const {
    const CommFamily& groups = work_.families[at(family)];
    const auto& members = groups.groups()[at(groups.group_of(rank))];
    return members[at((groups.place_of(rank) + peer) % static_cast<std::int32_t>(members.size()))];
  }

  /// Tells a pair apart from the sender's other pairs: by how far on the receiver is in the group,
  /// or by its number among the sender's own.
  std::int32_t which_pair(std::int32_t sender, const Kind& kind) {
    const auto [family, comm, bytes, send, peer] = kind;
    if (peer < 0) {
      return -1;
    }
    if (family < 0) {
      return pairs_of_[sender]++;
    }
    const CommFamily& groups = work_.families[at(family)];
    const auto size =
        static_cast<std::int32_t>(groups.groups()[at(groups.group_of(sender))].size());
    return send ? peer : size - peer;
  }

  const RankPrograms& work_;
  const std::vector<NodeId>& node_of_rank_;
  const Topology& topology_;
  const Adjacency adjacency_;
  const ScheduleSource& schedules_;
  const ReplayOptions& options_;
  std::vector<std::vector<Kind>> kinds_;  // per program
  std::vector<std::vector<std::int32_t>> kind_of_op_;
  std::map<Kind, std::int32_t> kind_number_;
  std::map<Key, std::int32_t> unit_;
  std::vector<Unit> units_;
  std::map<std::int32_t, std::int32_t> pairs_of_;
};

std::uint64_t mixed(std::uint64_t colour, std::uint64_t part) {
  colour = (colour ^ part) * 0x9E3779B97F4A7C15U;
  return colour ^ colour >> 29;
}

/// Tells the members of a group apart that send to each other, such as those of a ring: what one
/// rank sends and what it receives are two operations, and a class of both ends would have one.
std::vector<std::uint64_t> colours_of_pairs(const RankPrograms& work) {
  std::vector<bool> has_pairs(work.families.size(), false);
  for (const Program& program : work.programs) {
    for (const ProgramOp& op : program.ops()) {
      if (op.family >= 0 && op.peer >= 0) {
        has_pairs[at(op.family)] = true;
      }
    }
  }
  std::vector<std::uint64_t> colours(at(work.ranks()), 0);
  for (std::size_t family = 0; family < has_pairs.size(); ++family) {
    for (std::int32_t rank = 0; has_pairs[family] && rank < work.ranks(); ++rank) {
      colours[at(rank)] = mixed(
          colours[at(rank)], static_cast<std::uint64_t>(work.families[family].place_of(rank)) + 1);
    }
  }
  return colours;
}

/// Every slot and constraint a class of its own.
Partition nothing_alike(const FlowGraph& graph) {
  Partition partition;
  const auto count = [](std::vector<std::int32_t>& classes, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      classes.push_back(static_cast<std::int32_t>(i));
    }
    return static_cast<std::int32_t>(size);
  };
  partition.slot_classes = count(partition.slot_class, graph.slots.size());
  partition.constraint_classes = count(partition.constraint_class, graph.capacity.size());
  partition.place_classes = count(partition.place_class, graph.place_colour.size());
  return partition;
}

/// Folds a graph by a partition. False where slots of a class are those of several collectives,
/// which cannot be where each is connected, or where one class has both ends of a pair.
template <class Now>
bool fold_by(const FlowGraph& graph, const Partition& partition_of, const Units& units, Now now,
             StepFold& result) {
  const Partition* partition = &partition_of;
  result.communicators.clear();
  result.communicator_of.clear();
  result.class_of_rank = partition->place_class;
  result.representative.assign(at(partition->place_classes), -1);
  for (auto rank = static_cast<std::int32_t>(result.class_of_rank.size()); rank-- > 0;) {
    result.representative[at(result.class_of_rank[at(rank)])] = rank;
  }
  result.graph = fold(graph, *partition);
  result.ends.assign(result.graph.slots.size(), {});
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    const FlowGraph::Slot& slot = graph.slots[i];
    const auto is_first = [&](std::int32_t rank) {
      return rank >= 0 && result.representative[at(result.class_of_rank[at(rank)])] == rank;
    };
    StepFold::Ends& ends = result.ends[at(partition->slot_class[i])];
    ends.leave += is_first(slot.source) ? 1 : 0;
    ends.reach += is_first(slot.destination) ? 1 : 0;
  }

  // The communicators: what the slots of each collective are folded to.
  std::vector<std::int32_t> communicator(result.graph.slots.size(), -1);
  for (const Unit& unit : units.units()) {
    if (unit.first_slot < 0) {
      continue;
    }
    const std::int32_t first = unit.first_slot;
    const auto count = static_cast<std::int32_t>(unit.schedule->slots.size());
    std::int32_t& known = communicator[at(partition->slot_class[at(first)])];
    const bool is_new = known < 0;
    if (is_new) {
      known = static_cast<std::int32_t>(result.communicators.size());
      result.communicators.emplace_back();
    }
    const std::int32_t index = known;
    const auto& ends = unit.setting.places;
    if (unit.is_pair && result.class_of_rank[at(ends[0])] == result.class_of_rank[at(ends[1])]) {
      return false;
    }
    for (std::int32_t i = first; i < first + count; ++i) {
      const std::int32_t slot = partition->slot_class[at(i)];
      if (is_new && (i == first || communicator[at(slot)] < 0)) {
        communicator[at(slot)] = index;
        result.communicators[at(index)].slots.push_back(slot);
      }
      if (communicator[at(slot)] != index) {
        return false;
      }
    }
  }
  for (StepFold::Communicator& each : result.communicators) {
    std::map<std::int32_t, std::int64_t> shares;
    for (const std::int32_t slot : each.slots) {
      const FlowGraph::Slot& folded = result.graph.slots[at(slot)];
      if (folded.source >= 0) {
        shares[folded.source] += std::int64_t{folded.count} * result.ends[at(slot)].leave;
      }
      if (folded.destination >= 0) {
        shares[folded.destination] += std::int64_t{folded.count} * result.ends[at(slot)].reach;
      }
    }
    for (const auto& [place, share] : shares) {
      each.classes.push_back(place);
      each.shares.push_back(share);
    }
  }
  for (const std::int32_t rank : result.representative) {
    std::vector<std::int32_t>& of = result.communicator_of.emplace_back();
    for (const Kind& kind : units.kinds(rank)) {
      if (!now(kind)) {
        of.push_back(StepFold::kLater);
        continue;
      }
      const std::int32_t unit = units.unit_of(rank, kind);
      const std::int32_t first = unit < 0 ? -1 : units.units()[at(unit)].first_slot;
      const std::int32_t index =
          first < 0 ? -1 : communicator[at(partition->slot_class[at(first)])];
      const bool takes_part =
          index >= 0 && std::ranges::binary_search(result.communicators[at(index)].classes,
                                                   result.class_of_rank[at(rank)]);
      of.push_back(takes_part ? index : StepFold::kAlone);
    }
  }
  return true;
}

}  // namespace

StepFolder::StepFolder(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                       const Topology& topology, const FlowOptions& flow,
                       const ScheduleSource& schedules, const ReplayOptions& options,
                       std::vector<std::uint64_t> rank_colour, KeptStep* kept)
    : work_(work),
      node_of_rank_(node_of_rank),
      topology_(topology),
      flow_(flow),
      schedules_(schedules),
      options_(options),
      rank_colour_(std::move(rank_colour)),
      kept_(kept),
      phase_of_family_(work.families.size() + 1, 1) {
  if (kept_ != nullptr) {
    std::map<std::uint64_t, std::int32_t> numbers;
    for (const std::uint64_t colour : rank_colour_) {
      pattern_.push_back(
          numbers.try_emplace(colour, static_cast<std::int32_t>(numbers.size())).first->second);
    }
  }
  for (const Program& program : work.programs) {
    const std::size_t half = program.ops().size() / 2;
    for (std::size_t op = 0; op <= half && op < program.ops().size(); ++op) {
      if (program.ops()[op].comm != CommType::kNone) {
        const std::int32_t family = program.ops()[op].family;
        phase_of_family_[family < 0 ? work.families.size() : at(family)] = 0;
      }
    }
  }
  for (const Program& program : work.programs) {
    for (const ProgramOp& op : program.ops()) {
      if (op.comm != CommType::kNone &&
          phase_of_family_[op.family < 0 ? work.families.size() : at(op.family)] > 0) {
        phases_ = 2;
      }
    }
  }
}

std::shared_ptr<StepFold> StepFolder::fold(std::int32_t phase) const {
  if (kept_ == nullptr) {
    return make(phase, nullptr);
  }
  std::shared_ptr<StepFold>& fold = kept_->folds[{kept_->network, pattern_}][at(phase)];
  if (phase == 1 && ahead_.valid()) {
    fold = ahead_.get();
  }
  if (fold == nullptr) {
    fold = make(phase, &kept_->partitions[pattern_][at(phase)]);
  }
  return fold;
}

void StepFolder::fold_ahead() {
  if (kept_ != nullptr && phases_ > 1 && kept_->folds[{kept_->network, pattern_}][1] == nullptr) {
    std::optional<Partition>* known = &kept_->partitions[pattern_][1];
    ahead_ = std::async(std::launch::async, [this, known] { return make(1, known); });
  }
}

/// `known` is tried as the partition, and replaced by the one that was found.
std::shared_ptr<StepFold> StepFolder::make(std::int32_t last_phase,
                                           std::optional<Partition>* known) const {
  FlowOptions flow = flow_;
  flow.fresh_ports = false;
  if (!flow.is_steady() || flow.transport) {
    return nullptr;
  }
  const auto phase_of = [&](const Kind& kind) {
    const std::int32_t family = std::get<0>(kind);
    return phase_of_family_[family < 0 ? work_.families.size() : at(family)];
  };
  Units units(work_, node_of_rank_, topology_, schedules_, options_);
  for (std::int32_t phase = 0; phase <= last_phase; ++phase) {
    for (std::int32_t rank = 0; rank < work_.ranks(); ++rank) {
      for (const Kind& kind : units.kinds(rank)) {
        if (phase_of(kind) == phase && !units.add(rank, kind)) {
          return nullptr;
        }
      }
    }
  }
  if (last_phase == 0 && phases_ > 1) {  // those of the next phase must fold, too
    Units later(work_, node_of_rank_, topology_, schedules_, options_);
    for (std::int32_t rank = 0; rank < work_.ranks(); ++rank) {
      for (const Kind& kind : later.kinds(rank)) {
        if (phase_of(kind) > 0 && !later.add(rank, kind)) {
          return nullptr;
        }
      }
    }
    if (flow_.fresh_ports && !single_ways(topology_, flow.routes, distinct(later.ways()))) {
      return nullptr;
    }
  }
  auto made = std::make_shared<StepFold>();
  StepFold& result = *made;
  result.way = units.ways();
  std::vector<Way> ways = distinct(result.way);
  if (flow_.fresh_ports && !single_ways(topology_, flow.routes, ways)) {
    return nullptr;
  }
  FlowGraphBuilder builder(topology_, flow);
  builder.spare(spared_ports(topology_, flow, std::move(ways), options_.changes));
  for (Unit& unit : units.units()) {
    if (!unit.schedule->slots.empty()) {
      unit.first_slot = builder.add(*unit.schedule, unit.setting);
    }
  }
  FlowGraph graph = builder.finish();
  const std::vector<std::uint64_t> pairs = colours_of_pairs(work_);
  graph.place_colour.resize(at(work_.ranks()));
  for (std::int32_t rank = 0; rank < work_.ranks(); ++rank) {
    const auto program = static_cast<std::uint64_t>(work_.program_of_rank[at(rank)]);
    graph.place_colour[at(rank)] =
        pairs[at(rank)] ^ program << 32 ^ (rank_colour_.empty() ? 0 : rank_colour_[at(rank)]);
  }
  if (!options_.changes.empty()) {
    graph.constraint_colour.resize(graph.capacity.size());
    for (const NetworkChange& change : options_.changes) {
      const std::int32_t constraint = builder.constraint_of(change.port);
      if (constraint >= 0) {
        std::uint64_t& colour = graph.constraint_colour[at(constraint)];
        for (const std::uint64_t part : {static_cast<std::uint64_t>(change.when.count_ps()) + 1,
                                         std::bit_cast<std::uint64_t>(change.share)}) {
          colour = mixed(colour, part);
        }
      }
    }
  }
  std::optional<Partition> partition =
      find_symmetry(graph, known != nullptr && *known ? &**known : nullptr);
  if (known != nullptr) {
    *known = partition;
  }
  const auto phase_of_kind = [&](const Kind& kind) { return phase_of(kind) <= last_phase; };
  if (partition && !fold_by(graph, *partition, units, phase_of_kind, result)) {
    partition.reset();
  }
  if (!partition) {
    if (last_phase == 0) {
      return nullptr;
    }
    partition = nothing_alike(graph);
    LOCKSTEP_CHECK(fold_by(graph, *partition, units, phase_of_kind, result),
                   "slots of their own fold");
  }
  result.kind_of_op = std::move(units.kind_of_op());
  for (const NetworkChange& change : options_.changes) {
    const std::int32_t constraint = builder.constraint_of(change.port);
    if (constraint >= 0) {
      result.constraint_of_port[change.port.value] = partition->constraint_class[at(constraint)];
    }
  }
  result.first_of_slot.assign(result.graph.slots.size(), -1);
  for (std::size_t i = graph.slots.size(); i-- > 0;) {
    result.first_of_slot[at(partition->slot_class[i])] = static_cast<std::int32_t>(i);
  }
  result.slot_of = std::move(partition->slot_class);
  return made;
}

}  // namespace lockstep
