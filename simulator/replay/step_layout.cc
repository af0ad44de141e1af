#include "simulator/replay/step_layout.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/index.h"
#include "simulator/replay/single_ways.h"
#include "simulator/replay/spared_ports.h"
#include "simulator/replay/step_units.h"

namespace lockstep {
namespace {

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

/// A colour for each constraint whose port changes.
void colour_changes(const FlowGraphBuilder& builder, std::span<const NetworkChange> changes,
                    FlowGraph& graph) {
  if (changes.empty()) {
    return;
  }
  graph.constraint_colour.resize(graph.capacity.size());
  for (const NetworkChange& change : changes) {
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

/// Whether messages meet by packets, so that nothing folds: where ports decide ways, and in rings
/// with relays (SimAI's PXN), whose two legs a step meet at NICs as chance has it, too.
bool meet_by_packets(const StepPlace& place, const StepUnits& units) {
  return place.flow.fresh_ports &&
         (std::ranges::any_of(
              units.units(), [](const StepUnit& unit) { return !unit.schedule->relays.empty(); }) ||
          !single_ways(place.topology, place.flow.routes, units.each_way()));
}

/// Whether what comes after a phase could be folded, too.
bool later_ones_fold(const StepPlace& place, std::int32_t last_phase) {
  StepUnits later(place);
  std::int32_t unit = -1;
  for (std::int32_t rank = 0; rank < place.work.ranks(); ++rank) {
    for (const ProgramFacts::Kind& kind : later.kinds(rank)) {
      if (place.facts->phases.of(std::get<0>(kind)) > last_phase && !later.add(rank, kind, unit)) {
        return false;
      }
    }
  }
  return !meet_by_packets(place, later);
}

}  // namespace

bool meet_by_packets(const StepPlace& place) {
  if (!place.flow.fresh_ports) {
    return false;
  }
  StepUnits units(place);
  std::int32_t unit = -1;
  for (std::int32_t rank = 0; rank < place.work.ranks(); ++rank) {
    for (const ProgramFacts::Kind& kind : units.kinds(rank)) {
      if (!units.add(rank, kind, unit)) {
        return true;
      }
    }
  }
  return meet_by_packets(place, units);
}

std::shared_ptr<const StepLayout> lay_out(const StepPlace& place, std::int32_t last_phase) {
  const StepPhases& phases = place.facts->phases;
  FlowOptions flow = place.flow;
  flow.fresh_ports = false;
  if (!flow.is_steady() || flow.transport) {
    return nullptr;
  }
  const RankPrograms& work = place.work;
  auto made = std::make_shared<StepLayout>();
  StepLayout& layout = *made;
  StepUnits units(place);
  layout.unit_of.resize(at(work.ranks()));
  for (std::int32_t phase = 0; phase <= last_phase; ++phase) {
    for (std::int32_t rank = 0; rank < work.ranks(); ++rank) {
      const std::vector<ProgramFacts::Kind>& kinds = units.kinds(rank);
      std::vector<std::int32_t>& unit_of = layout.unit_of[at(rank)];
      unit_of.resize(kinds.size(), StepLayout::kLater);
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (phases.of(std::get<0>(kinds[i])) == phase && !units.add(rank, kinds[i], unit_of[i])) {
          return nullptr;
        }
      }
    }
  }
  if (last_phase + 1 < phases.count && !later_ones_fold(place, last_phase)) {
    return nullptr;
  }
  if (meet_by_packets(place, units)) {
    return nullptr;
  }
  layout.ways = std::make_shared<Ways>(units.ways());
  const std::vector<Way>& ways = layout.ways->each();
  FlowGraphBuilder builder(place.topology, flow);
  builder.spare(spared_ports(place.topology, flow, ways, place.options.changes));
  for (const StepUnit& unit : units.units()) {
    StepLayout::Unit& added = layout.units.emplace_back();
    added.slots = static_cast<std::int32_t>(unit.schedule->slots.size()) *
                  unit.schedule->connections_of_slot();
    if (unit.is_pair) {
      added.sender = unit.setting.places[0];
      added.receiver = unit.setting.places[1];
    }
    if (added.slots > 0) {
      added.first_slot = builder.add(*unit.schedule, unit.setting);
    }
  }
  layout.graph = builder.finish();
  layout.graph.place_colour = colours_of_pairs(work);
  for (std::int32_t rank = 0; rank < work.ranks(); ++rank) {
    const auto program = static_cast<std::uint64_t>(work.program_of_rank[at(rank)]);
    layout.graph.place_colour[at(rank)] ^= program << 32;
  }
  colour_changes(builder, place.options.changes, layout.graph);
  for (std::size_t port = 0; port < 2 * place.topology.links.size(); ++port) {
    layout.constraint_of.push_back(builder.constraint_of(PortId(port)));
  }
  return made;
}

}  // namespace lockstep
