#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/job/mixed_cuts.h"
#include "planner/job/mixed_fits.h"

namespace lockstep {

/// Every plan of a mixed problem's space: nodes, each a cut with a division of the slots, and their
/// leaves, with layers and shares of the batch fitted, one for each placement of the ranks.
class MixedLeaves {
 public:
  /// O(cuts x divisions). `bound` is used here alone.
  MixedLeaves(const MixedProblem& problem, MixedBound& bound);

  std::size_t nodes() const { return nodes_.size(); }
  /// Lower bounds of what all leaves of a node have.
  struct Least {
    double step_s = 0;
    Bytes memory;
  };
  Least least(std::size_t node);
  /// What the objective makes of the least.
  double least_value(std::size_t node);
  const std::string& node_family(std::size_t node) const;

  /// The ids of a node's leaves, which are made now.
  std::vector<std::size_t> expand(std::size_t node);

  std::size_t size() const { return leaves_.size(); }
  /// A leaf's passes alone: its step is not below that.
  double busy_s(std::size_t id) const { return leaves_[id].busy_s; }
  const std::string& family(std::size_t id) const { return node_family(leaves_[id].node); }
  /// With `floor` 0. For several threads at once.
  MixedPlan plan(std::size_t id) const;

  std::int64_t cuts() const { return std::ssize(cuts_); }
  std::int64_t division_count() const { return division_count_; }
  const LeftOut& left_out() const { return left_out_; }
  /// The error of a space without plans: what was left out and why.
  [[noreturn]] void nothing_fits() const;

 private:
  /// The divisions of the slots of some width.
  struct Grounds {
    std::vector<std::vector<std::int32_t>> slots;  ///< by pool
    std::vector<Division> divisions;
    std::vector<std::string> families;
  };
  struct Node {
    std::size_t cut = 0, division = 0;
  };
  /// Some pipelines of a leaf.
  struct Kind {
    std::size_t form = 0;
    std::int64_t pipelines = 0, microbatches = 0;
    const PipelineFit* fit = nullptr;
  };
  struct Leaf {
    std::size_t node = 0;
    std::vector<Kind> kinds;
    bool stage_by_stage = false;
    double busy_s = 0;
  };
  using FirstRanks = std::vector<std::vector<std::vector<std::int32_t>>>;

  const Grounds& grounds(const MixedCut& cut);
  void add_nodes(std::size_t cut);
  /// Why a cut has no plan with a division; "": it may have.
  std::string obstacle(const MixedCut& cut, const Division& division) const;
  const Division& division_of(const Node& node) const;
  std::int64_t microbatches(const MixedCut& cut) const;
  Bytes least_memory(const Node& node);
  std::vector<Kind> kinds_of(const Node& node, std::string& why);
  std::vector<Kind> same_kinds(const Node& node, std::string& why);
  FirstRanks placed(const Leaf& leaf) const;

  const MixedProblem& problem_;
  std::int64_t layers_;
  bool tied_ = false;
  PipelineFits fits_;
  std::vector<MixedCut> cuts_;
  std::map<std::pair<std::int64_t, std::int64_t>, Grounds> grounds_;  ///< by width and tp
  std::vector<const Grounds*> ground_of_;                             ///< by cut
  std::int64_t division_count_ = 0;
  std::vector<Node> nodes_;
  std::deque<PipelineFit> joint_fits_;
  std::vector<Leaf> leaves_;
  std::map<std::tuple<std::size_t, std::int64_t, std::size_t, bool>, double> least_s_;
  LeftOut left_out_;
  mutable std::mutex mutex_;  ///< of fits_, for plan()
  mutable PipelineFits memory_of_;
};

}  // namespace lockstep
