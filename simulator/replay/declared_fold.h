#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "simulator/collectives/schedule.h"
#include "simulator/network/flow/path_finder.h"
#include "simulator/replay/flow_graph.h"
#include "simulator/replay/lone_collective.h"
#include "topologies/orbits.h"

namespace lockstep {

/// A collective folded by symmetry that its algorithm declares (CollectiveAlgorithm::build_leaving)
/// and its fabric is proved to have (find_orbits()), without ever being written out: an all-to-all
/// of 8192 ranks is 67 million slots, but all ranks of an orbit send alike, so that the slots of
/// one of them tell what the others' are.
///
/// Let G be a group of automorphisms of the fabric that keeps who is a rank and when it enters.
/// Slots and sprayed routes are mapped onto each other by G, so slots fall into orbits, and those
/// of slots and of ports are equitable (symmetry.h). A class here is the union of the orbits whose
/// slots have equal numbers and put equal weights on each orbit of ports; it is made from the
/// slots of one rank of each orbit, each standing for as many as the orbit has ranks. A port p of
/// orbit P is crossed by as much of class C as every other of P, hence by
///
///     a(P, C) = sum over the slots s of C of (weight of s on all of P) / |P|
///
/// which comes out whole in the solver's units of weight. O(rank orbits x ranks x hops).
class DeclaredFold {
 public:
  /// Builds the slots that leave a rank.
  using Leaving = std::function<Schedule(std::int32_t rank)>;

  /// Nothing where it does not pay or cannot be proved: routes that hang on hashes or channels, new
  /// ports for every transfer, PXN where servers differ, more orbits of ranks than an eighth of
  /// them, or ports of which it stays open whether they can bind. ERRORS: those of PathFinder.
  static std::optional<DeclaredFold> make(const LoneCollective& collective, const Leaving& leaving,
                                          const Topology& topology, const FlowOptions& flow);

  const FlowGraph& graph() const { return graph_; }
  /// Slots that it stands for.
  std::int64_t slots() const { return slots_; }
  /// The class of any slot of the whole collective, or -1: for checks.
  std::int32_t class_of(const Schedule& schedule, const Slot& slot);

 private:
  /// What slots of a class have in common: their numbers, then (orbit, weight) of their ports.
  using Kind = std::vector<std::int64_t>;
  struct Crossed {
    bool binds = false;
    std::vector<std::int32_t> before;  ///< orbits that lead to it
    std::int32_t port = -1;            ///< one of it
  };

  DeclaredFold(const LoneCollective& collective, const Topology& topology, const FlowOptions& flow,
               Orbits orbits);
  void describe(const Schedule& schedule, const Slot& slot);
  void add_rank(const Schedule& leaving, std::int64_t copies);
  void note_crossings(const Path& path);
  bool find_binding(const Topology& topology);
  bool make_terms();

  FlowOptions flow_;
  bool single_paths_;  ///< routes must be without a choice, as they are not sprayed
  PathFinder paths_;
  Orbits orbits_;
  FlowGraphBuilder::Setting setting_;
  FlowGraph graph_;
  std::int64_t slots_ = 0;
  std::map<Kind, std::int32_t> classes_;
  std::vector<Kind> kinds_;       ///< per class
  std::vector<Crossed> crossed_;  ///< per orbit of ports
  bool even_ = true;              ///< no route had a choice that is not sprayed
  // Scratch of describe().
  Kind kind_;
  FlowGraph::Slot numbers_;
  RateLimit limit_;
  std::vector<std::int64_t> weight_;  ///< per orbit of ports
  std::vector<std::int32_t> on_;
};

/// The collective on the flow engine, folded so; nothing where make() gives nothing. With
/// options.verify `whole` builds the whole schedule, which then runs in full and is compared slot
/// by slot. ERRORS: as run_on_flow_engine().
std::optional<LoneCollectiveResult> run_declared(
    const LoneCollective& collective, const DeclaredFold::Leaving& leaving,
    const std::function<std::shared_ptr<const Schedule>()>& whole, const Topology& topology,
    const FlowOptions& flow, const LoneCollectiveOptions& options);

}  // namespace lockstep
