#include "simulator/replay/step_units.h"

#include <utility>

#include "base/index.h"
#include "simulator/replay/switch_node.h"

namespace lockstep {
namespace {

/// One of each slot.
void add_slots(const StepUnit& unit, Ways& ways) {
  for (const Slot& slot : unit.schedule->slots) {
    ways.add({unit.setting.nodes[at(slot.source)], unit.setting.nodes[at(slot.destination)],
              slot.channel});
  }
}

}  // namespace

StepUnits::StepUnits(const StepPlace& place)
    : place_(place), adjacency_(place.topology), fabrics_(place.topology) {}

std::vector<Way> StepUnits::each_way() const {
  Ways ways;
  for (const StepUnit& unit : units_) {
    add_slots(unit, ways);
  }
  return ways.each();
}

Ways StepUnits::ways() const {
  Ways ways;
  for (const StepUnit& unit : units_) {
    const std::vector<Slot>& slots = unit.schedule->slots;
    add_slots(unit, ways);
    for (std::int32_t k = 1; k < unit.schedule->connections_of_slot(); ++k) {
      for (std::size_t i = 0; i < slots.size(); ++i) {
        ways.add_like(ways.of().size() - slots.size());
      }
    }
  }
  return ways;
}

bool StepUnits::add(std::int32_t rank, const Kind& kind, std::int32_t& unit) {
  const auto [known, is_new] =
      unit_.try_emplace(key_of(rank, kind), static_cast<std::int32_t>(units_.size()));
  unit = known->second;
  if (!is_new) {
    return true;
  }
  const auto [family, comm, bytes, send, peer] = kind;
  std::vector<std::int32_t> members;
  if (family >= 0 && peer < 0) {
    members = place_.work.families[at(family)].groups()[at(std::get<1>(known->first))];
  } else {
    members = {std::get<1>(known->first), std::get<2>(known->first)};
  }
  if (members.size() < 2) {
    unit = known->second = StepLayout::kAlone;
    return true;
  }
  FlowGraphBuilder::Setting setting;
  setting.nodes.reserve(members.size());
  servers_.clear();
  for (const std::int32_t member : members) {
    setting.nodes.push_back(place_.node_of_rank[at(member)]);
    servers_.push_back(place_.topology.nodes[setting.nodes.back().index()].server);
  }
  const bool tensor = place_.options.tensor_schedules && family >= 0 &&
                      place_.work.families[at(family)].kind() == GroupKind::kTp;
  const auto [asked, first] =
      schedule_of_.try_emplace({tensor, comm, bytes, fabrics_.shape_of(servers_)});
  std::shared_ptr<const Schedule>& schedule = asked->second;
  if (first) {
    const ScheduleSource& source = tensor ? place_.options.tensor_schedules : place_.schedules;
    const std::lock_guard lock(*place_.asking);
    schedule = source(comm, bytes, std::get<GroupShape>(asked->first));
  }
  if (!schedule->chunk_sizes.empty()) {
    return false;
  }
  for (const SwitchPlace& at_switch : schedule->switches) {
    setting.nodes.push_back(
        switch_node(place_.topology, adjacency_, setting.nodes[at(at_switch.near)], at_switch));
  }
  setting.places = std::move(members);
  setting.send_latency = place_.options.send_latency;
  setting.forward_latency =
      comm == CommType::kReduceScatter ? place_.options.reduce_latency : Time();
  const auto number = static_cast<std::int32_t>(kind_number_.size());
  setting.kind =
      kind_number_
          .try_emplace({family, comm, bytes, false, which_pair(setting.places[0], kind)}, number)
          .first->second;
  units_.push_back({schedule, std::move(setting), family < 0 || peer >= 0});
  return true;
}

StepUnits::Key StepUnits::key_of(std::int32_t rank, const Kind& kind) const {
  const auto [family, comm, bytes, send, peer] = kind;
  if (family >= 0 && peer < 0) {
    return {family, place_.work.families[at(family)].group_of(rank), -1, comm, bytes};
  }
  const std::int32_t other = family < 0 ? peer : other_of(rank, family, peer);
  return {family < 0 ? -1 : -2 - family, send ? rank : other, send ? other : rank, comm, bytes};
}

std::int32_t StepUnits::other_of(std::int32_t rank, std::int32_t family, std::int32_t peer) const {
  const CommFamily& groups = place_.work.families[at(family)];
  const auto& members = groups.groups()[at(groups.group_of(rank))];
  return members[at((groups.place_of(rank) + peer) % static_cast<std::int32_t>(members.size()))];
}

/// Tells a pair apart from the sender's other pairs: by how far on the receiver is in the group, or
/// by its number among the sender's own.
std::int32_t StepUnits::which_pair(std::int32_t sender, const Kind& kind) {
  const auto [family, comm, bytes, send, peer] = kind;
  if (peer < 0) {
    return -1;
  }
  if (family < 0) {
    return pairs_of_[sender]++;
  }
  const CommFamily& groups = place_.work.families[at(family)];
  const auto size = static_cast<std::int32_t>(groups.groups()[at(groups.group_of(sender))].size());
  return send ? peer : size - peer;
}

}  // namespace lockstep
