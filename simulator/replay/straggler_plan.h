#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "base/units.h"
#include "simulator/replay/program.h"
#include "simulator/replay/rank_speed.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/straggler.h"
#include "topologies/topology.h"

namespace lockstep {

/// What stragglers refer to: the ranks of a run, where they are, and the fabric.
struct StragglerContext {
  std::span<const CommFamily> families;
  std::vector<std::int32_t> server_of_rank;
  std::vector<NodeId> node_of_rank;    ///< empty without a network
  const Topology* topology = nullptr;  ///< nullptr: an engine without a network
  std::uint64_t seed = 0;
  std::int64_t step = 0;

  std::int32_t ranks() const { return static_cast<std::int32_t>(server_of_rank.size()); }
  /// The family of that kind, of the rank's job, that the rank is in; nullptr where there is none.
  const CommFamily* family_of(GroupKind kind, std::int32_t rank) const;
  /// A rank's place in its group of that kind, 0 where it has none; and the largest group's size,
  /// of any job.
  std::int32_t place(GroupKind kind, std::int32_t rank) const;
  std::int32_t size(GroupKind kind) const;
  /// Which of its job's data-parallel ranks a rank belongs to: those that work on the same
  /// sequences have equal numbers, whatever their stage, tensor- and context-parallel place.
  std::int32_t data_parallel_rank(std::int32_t rank) const;
  /// A number for draws of a group of a family: its own among all jobs, `group` in the first one.
  std::uint64_t draw_of(const CommFamily& family, std::int32_t group) const;
};

/// What all stragglers of a run together do to it: how fast each rank computes when, factors on
/// single operations, and what becomes of links. Built by the models, read by the replay.
class StragglerPlan {
 public:
  /// A factor on an operation's duration; computes with equal arguments get equal factors.
  using Factor = std::function<double(std::int32_t rank, std::int32_t op, const ProgramOp&)>;

  StragglerPlan(std::span<const Straggler> stragglers, const StragglerContext& context);

  // For the models.
  void slow(std::int32_t rank, const SpeedWindow& window) {
    speed_[static_cast<std::size_t>(rank)].add(window);
  }
  /// `alike[rank]`: ranks with equal numbers there get equal factors for equal operations.
  void factor(Factor factor, std::span<const std::uint64_t> alike);
  /// What the all-to-alls of a group of an expert-parallel family carry (ReplayOptions::loads).
  using Loads = std::function<std::vector<double>(const CommFamily& family, std::int32_t group,
                                                  std::int32_t microbatch)>;
  void loads(Loads loads) { loads_.push_back(std::move(loads)); }
  /// Both directions of a link keep `share` of their bandwidth, or lose `taken`.
  void scale_link(const Straggler& spec, LinkId link, double share);
  /// Both directions lose packets; `share` of their bandwidth is left where there are no packets.
  void lose(const Straggler& spec, LinkId link, double probability, double share);
  void scale_port(const Straggler& spec, PortId port, double share, Bandwidth taken = {});
  /// Links fail from the straggler's FROM to its UNTIL.
  void fail(const Straggler& spec, std::vector<LinkId> links, Time rerouting);
  /// Of the straggler at hand, for draws of its own.
  std::uint64_t index() const { return index_; }
  /// Reproducible draws: equal arguments, equal stream.
  Rng rng(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) const;

  // For the replay.
  bool empty() const { return !computes_ && changes_.empty() && loads_.empty() && faults_.empty(); }
  /// Whether ranks of equal colours() behave alike: even all-to-alls, connections that keep their
  /// ways.
  bool folds() const { return loads_.empty() && faults_.empty(); }
  /// Whether computations take longer than they should.
  bool slows_computations() const { return computes_; }
  /// Whether a computation takes as long whenever it begins, and equal ones on a rank equally long.
  bool steady() const;
  /// What tells ranks apart, by how fast they compute when: ranks of equal colours and programs
  /// compute alike.
  std::vector<std::uint64_t> colours() const;
  /// How long a computation that starts at `begin` takes.
  Time duration(std::int32_t rank, std::int32_t op, const ProgramOp& what, Time begin) const;
  /// In order of time.
  std::vector<NetworkChange> changes() const;
  /// Whether all-to-alls are uneven, which a fold cannot tell ranks apart by; and of one over a
  /// group of experts how, empty where it is even: the product of all models'.
  bool uneven() const { return !loads_.empty(); }
  std::vector<double> loads_of(const ProgramOp& op, std::int32_t group) const;
  const std::vector<LinkFault>& faults() const { return faults_; }
  /// Without a clock: the largest factor of any rank. ERRORS: Error where a straggler comes and
  /// goes, depends on the microbatch, or is one of links.
  double slowest() const;

 private:
  struct Share {
    double share = 1;
    Bandwidth taken;
    Time from, until;
    double loss = 0;  // probability; `share` is then what it costs
  };

  const StragglerContext& context_;
  std::uint64_t index_ = 0;  // of the straggler at hand
  std::vector<RankSpeed> speed_;
  std::vector<Factor> factors_;
  std::vector<Loads> loads_;
  std::vector<std::uint64_t> colour_;                   // of each rank, by the factors
  std::map<std::int32_t, std::vector<Share>> changes_;  // by port
  std::vector<LinkFault> faults_;
  bool computes_ = false;
};

/// The links between two nodes, and those of one; ERRORS: Error about the field.
std::vector<LinkId> links_between(const Straggler& spec, std::size_t field,
                                  const Topology& topology, std::int64_t a, std::int64_t b);
std::vector<LinkId> links_of(const Topology& topology, NodeId node);
/// A GPU's NICs: its links to switches outside its server.
std::vector<LinkId> nics_of(const Topology& topology, NodeId gpu);
/// ERRORS: Error where there is no network.
const Topology& topology_of(const Straggler& spec, const StragglerContext& context);

}  // namespace lockstep
