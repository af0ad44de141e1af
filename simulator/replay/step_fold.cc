#include "simulator/replay/step_fold.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "simulator/replay/switch_node.h"
#include "simulator/replay/symmetry.h"

namespace lockstep {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

bool is_pair(const ProgramOp& op) { return op.family < 0 || op.peer >= 0; }

/// Lays out every connection that the step's programs use.
class Connections {
 public:
  Connections(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
              const Topology& topology, const FlowOptions& flow, const ScheduleSource& schedules,
              const ReplayOptions& options)
      : work_(work),
        node_of_rank_(node_of_rank),
        topology_(topology),
        schedules_(schedules),
        options_(options),
        builder_(topology, flow, /*keep_hops=*/true) {}

  /// False where a collective cannot be folded.
  bool add_all() {
    for (std::int32_t rank = 0; rank < work_.ranks(); ++rank) {
      const auto& kinds = kinds_of(work_.program_of_rank[at(rank)]);
      for (const Kind& kind : kinds) {
        if (!add(rank, kind)) {
          return false;
        }
      }
    }
    return true;
  }

  /// The first connection of a rank's collective or pair; -1 where it is alone in its group.
  std::int32_t first_slot(std::int32_t rank, const ProgramOp& op) const {
    const auto found = first_.find(key_of(rank, kind_of(op)));
    return found == first_.end() ? -1 : found->second;
  }
  /// First slot and number of slots of each collective.
  const std::map<std::int32_t, std::int32_t>& ranges() const { return count_; }
  FlowGraphBuilder& builder() { return builder_; }

 private:
  /// What connections of one sort have in common. For pairs `send` and `peer` matter.
  using Kind = std::tuple<std::int32_t, CommType, Bytes, bool, std::int32_t>;
  /// Family, group or sender, receiver, kind number.
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, CommType, Bytes>;

  static Kind kind_of(const ProgramOp& op) {
    return is_pair(op) ? Kind{op.family, op.comm, op.bytes, op.send, op.peer}
                       : Kind{op.family, op.comm, op.bytes, false, -1};
  }

  const std::vector<Kind>& kinds_of(std::int32_t program) {
    const auto [place, is_new] = kinds_.try_emplace(program);
    if (is_new) {
      std::set<Kind> seen;
      for (const ProgramOp& op : work_.programs[at(program)].ops()) {
        if (op.comm != CommType::kNone && seen.insert(kind_of(op)).second) {
          place->second.push_back(kind_of(op));
        }
      }
    }
    return place->second;
  }

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

  bool add(std::int32_t rank, const Kind& kind) {
    const Key key = key_of(rank, kind);
    if (first_.contains(key)) {
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
    const std::shared_ptr<const Schedule> schedule = schedules_(comm, bytes, group_shape(servers));
    if (!schedule->chunk_sizes.empty()) {
      return false;
    }
    for (const SwitchPlace& place : schedule->switches) {
      setting.nodes.push_back(switch_node(topology_, setting.nodes[at(place.near)], place));
    }
    setting.places = members;
    setting.send_latency = options_.send_latency;
    setting.forward_latency = comm == CommType::kReduceScatter ? options_.reduce_latency : Time();
    const auto number = static_cast<std::int32_t>(kind_number_.size());
    setting.kind =
        kind_number_.try_emplace({family, comm, bytes, false, which_pair(members[0], kind)}, number)
            .first->second;
    if (schedule->slots.empty()) {
      first_.emplace(key, -1);
      return true;
    }
    const std::int32_t first = builder_.add(*schedule, setting);
    first_.emplace(key, first);
    count_.emplace(first, static_cast<std::int32_t>(schedule->slots.size()));
    return true;
  }

  const RankPrograms& work_;
  const std::vector<NodeId>& node_of_rank_;
  const Topology& topology_;
  const ScheduleSource& schedules_;
  const ReplayOptions& options_;
  FlowGraphBuilder builder_;
  std::map<std::int32_t, std::vector<Kind>> kinds_;
  std::map<Kind, std::int32_t> kind_number_;
  std::map<Key, std::int32_t> first_;
  std::map<std::int32_t, std::int32_t> count_;  // slots from each first one on
  std::map<std::int32_t, std::int32_t> pairs_of_;
};

}  // namespace

std::optional<StepFold> fold_step(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                                  const Topology& topology, const FlowOptions& flow,
                                  const ScheduleSource& schedules, const ReplayOptions& options,
                                  const std::vector<std::uint64_t>& rank_colour) {
  if (flow.fresh_ports || flow.transport) {
    return std::nullopt;
  }
  Connections connections(work, node_of_rank, topology, flow, schedules, options);
  if (!connections.add_all()) {
    return std::nullopt;
  }
  FlowGraph graph = connections.builder().finish();
  graph.place_colour.resize(at(work.ranks()));
  for (std::int32_t rank = 0; rank < work.ranks(); ++rank) {
    const auto program = static_cast<std::uint64_t>(work.program_of_rank[at(rank)]);
    graph.place_colour[at(rank)] =
        program << 32 ^ (rank_colour.empty() ? 0 : rank_colour[at(rank)]);
  }
  const std::optional<Partition> partition = find_symmetry(graph);
  if (!partition) {
    return std::nullopt;
  }

  StepFold result;
  result.class_of_rank = partition->place_class;
  result.representative.assign(at(partition->place_classes), -1);
  for (std::int32_t rank = work.ranks(); rank-- > 0;) {
    result.representative[at(result.class_of_rank[at(rank)])] = rank;
  }
  result.graph = fold(graph, *partition);
  result.ends.resize(result.graph.slots.size());
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
  for (const auto& [first, count] : connections.ranges()) {
    std::int32_t& known = communicator[at(partition->slot_class[at(first)])];
    const bool is_new = known < 0;
    if (is_new) {
      known = static_cast<std::int32_t>(result.communicators.size());
      result.communicators.emplace_back();
    }
    const std::int32_t index = known;
    for (std::int32_t i = first; i < first + count; ++i) {
      const std::int32_t slot = partition->slot_class[at(i)];
      if (is_new && (i == first || communicator[at(slot)] < 0)) {
        communicator[at(slot)] = index;
        result.communicators[at(index)].slots.push_back(slot);
      }
      if (communicator[at(slot)] != index) {
        return std::nullopt;  // cannot happen where every collective is connected
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
    for (const ProgramOp& op : work.program(rank).ops()) {
      const std::int32_t first = op.comm == CommType::kNone ? -1 : connections.first_slot(rank, op);
      const std::int32_t index =
          first < 0 ? -1 : communicator[at(partition->slot_class[at(first)])];
      const bool takes_part =
          index >= 0 && std::ranges::binary_search(result.communicators[at(index)].classes,
                                                   result.class_of_rank[at(rank)]);
      of.push_back(takes_part ? index : -1);
    }
  }
  result.hops = std::move(connections.builder().hops());
  result.hop_begin = std::move(connections.builder().hop_begin());
  result.slot_of = partition->slot_class;
  return result;
}

}  // namespace lockstep
