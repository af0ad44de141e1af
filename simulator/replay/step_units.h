#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/schedule.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/flow_graph.h"
#include "simulator/replay/step_layout.h"
#include "simulator/replay/ways.h"
#include "topologies/routing.h"

namespace lockstep {

/// A collective or pair whose connections are to be laid out.
struct StepUnit {
  std::shared_ptr<const Schedule> schedule;
  FlowGraphBuilder::Setting setting;
  bool is_pair = false;
};

/// Finds the collectives and pairs that a step's programs use.
class StepUnits {
 public:
  using Kind = ProgramFacts::Kind;

  explicit StepUnits(const StepPlace& place);

  const std::vector<Kind>& kinds(std::int32_t rank) const {
    return place_.facts->kinds[static_cast<std::size_t>(
        place_.work.program_of_rank[static_cast<std::size_t>(rank)])];
  }
  const std::vector<StepUnit>& units() const { return units_; }
  /// Of all connections, in their units' order.
  Ways ways() const;
  /// Each of them once, without the list of all. O(slots).
  std::vector<Way> each_way() const;

  /// Appends a rank's unit if it is new, and gives its number, or -1 where the rank is alone. False
  /// where it cannot be folded: transfers of unequal sizes.
  bool add(std::int32_t rank, const Kind& kind, std::int32_t& unit);

 private:
  /// Family, group or sender, receiver, what.
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, CommType, Bytes>;

  Key key_of(std::int32_t rank, const Kind& kind) const;
  std::int32_t other_of(std::int32_t rank, std::int32_t family, std::int32_t peer) const;
  std::int32_t which_pair(std::int32_t sender, const Kind& kind);

  const StepPlace place_;
  const Adjacency adjacency_;
  const ServerFabrics fabrics_;
  std::map<Kind, std::int32_t> kind_number_;
  std::map<Key, std::int32_t> unit_;
  std::vector<StepUnit> units_;
  std::map<std::int32_t, std::int32_t> pairs_of_;
  /// What the sources answered: for tensor-parallel groups or others, what, on which shape.
  std::map<std::tuple<bool, CommType, Bytes, GroupShape>, std::shared_ptr<const Schedule>>
      schedule_of_;
  std::vector<std::int32_t> servers_;  // scratch
};

}  // namespace lockstep
