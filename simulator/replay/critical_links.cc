#include "simulator/replay/critical_links.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "base/index.h"
#include "simulator/network/flow/path_finder.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/switch_node.h"

namespace lockstep {
namespace {

/// A rank and what it moves: family, peer, whether it sends, collective, bytes.
using Kind = std::tuple<std::int32_t, std::int32_t, std::int32_t, bool, CommType, Bytes>;

class Limits {
 public:
  Limits(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
         const Topology& topology, const FlowOptions& flow, const ScheduleSource& schedules)
      : work_(work),
        node_of_rank_(node_of_rank),
        topology_(topology),
        adjacency_(topology),
        fabrics_(topology),
        paths_(topology, flow),
        schedules_(schedules) {}

  /// The port that limits a rank's part of an operation; invalid where it moves nothing.
  PortId of(std::int32_t rank, const ProgramOp& op) {
    const auto [known, is_new] =
        known_.try_emplace({rank, op.family, op.peer, op.send, op.comm, op.bytes});
    if (is_new) {
      known->second = find(rank, op);
    }
    return known->second;
  }

 private:
  PortId find(std::int32_t rank, const ProgramOp& op) {
    const std::vector<std::int32_t> members = members_of(rank, op);
    if (members.size() < 2) {
      return {};
    }
    std::vector<NodeId> nodes;
    std::vector<std::int32_t> servers;
    for (const std::int32_t member : members) {
      nodes.push_back(node_of_rank_[at(member)]);
      servers.push_back(topology_.nodes[nodes.back().index()].server);
    }
    const auto place =
        static_cast<std::int32_t>(std::ranges::find(members, rank) - members.begin());
    const auto schedule = schedules_(op.comm, op.bytes, fabrics_.shape_of(servers));
    for (const SwitchPlace& each : schedule->switches) {
      nodes.push_back(switch_node(topology_, adjacency_, nodes[at(each.near)], each));
    }
    std::map<std::int32_t, double> bytes;  // of each port
    for (const Slot& slot : schedule->slots) {
      if (slot.source == place || slot.destination == place) {
        const double all = static_cast<double>(schedule->bytes(slot, 0).count()) * slot.count;
        for (const MaxMin::Term& hop :
             paths_.next(nodes[at(slot.source)], nodes[at(slot.destination)], slot.channel).ports) {
          bytes[hop.constraint.value] += all * hop.coefficient;
        }
      }
    }
    PortId slowest;
    double longest = 0;
    for (const auto& [port, carried] : bytes) {
      const double taken = carried / paths_.capacity(PortId(port));
      if (taken > longest * (1 + 1e-9)) {
        longest = taken;
        slowest = PortId(port);
      }
    }
    return slowest;
  }

  /// The group; of a message its sender and its receiver.
  std::vector<std::int32_t> members_of(std::int32_t rank, const ProgramOp& op) const {
    if (op.family >= 0 && op.peer < 0) {
      const CommFamily& family = work_.families[at(op.family)];
      return family.groups()[at(family.group_of(rank))];
    }
    std::int32_t other = op.peer;
    if (op.family >= 0) {
      const CommFamily& family = work_.families[at(op.family)];
      const auto& group = family.groups()[at(family.group_of(rank))];
      other =
          group[at((family.place_of(rank) + op.peer) % static_cast<std::int32_t>(group.size()))];
    }
    return op.send ? std::vector{rank, other} : std::vector{other, rank};
  }

  const RankPrograms& work_;
  const std::vector<NodeId>& node_of_rank_;
  const Topology& topology_;
  const Adjacency adjacency_;
  const ServerFabrics fabrics_;
  PathFinder paths_;
  const ScheduleSource& schedules_;
  std::map<Kind, PortId> known_;
};

}  // namespace

std::vector<LinkShare> critical_links(const RankPrograms& work,
                                      const std::vector<NodeId>& node_of_rank,
                                      const Topology& topology, const FlowOptions& flow,
                                      const ScheduleSource& schedules, const CriticalPath& path) {
  Limits limits(work, node_of_rank, topology, flow, schedules);
  std::map<std::int32_t, Time> by_port;
  for (const CriticalPiece& piece : path.pieces) {
    const ProgramOp& op = work.program(piece.rank).ops()[at(piece.op)];
    if (op.comm != CommType::kNone) {
      if (const PortId port = limits.of(piece.rank, op); port.valid()) {
        by_port[port.value] += piece.end - piece.begin;
      }
    }
  }
  std::vector<LinkShare> shares;
  shares.reserve(by_port.size());
  for (const auto& [port, time] : by_port) {
    shares.push_back({PortId(port), time});
  }
  std::ranges::stable_sort(shares, std::greater<>(), &LinkShare::time);
  return shares;
}

}  // namespace lockstep
