#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "generator/exact/memory.h"
#include "planner/job/mixed_bound.h"
#include "planner/job/mixed_plan.h"
#include "planner/job/mixed_space.h"

namespace lockstep {

/// A split of a pipeline's layers that fits its GPUs.
struct PipelineFit {
  std::vector<std::int64_t> layers;
  std::vector<double> stage_s;
  double slowest_s = 0, sum_s = 0;
};

/// Every plan of a mixed problem's space that fits: each cut (tp, microbatch, …) with each division
/// of the slots and each placement of its ranks, layers and shares of the batch fitted to them.
class MixedLeaves {
 public:
  /// O(cuts x divisions), with a split of layers for each kind of pipeline. `bound` is used here
  /// alone.
  MixedLeaves(const MixedProblem& problem, MixedBound& bound);

  std::size_t size() const { return leaves_.size(); }
  /// The passes of a leaf's slowest stage and of those before it: its step is not below that.
  double busy_s(std::size_t id) const { return leaves_[id].busy_s; }
  std::string family(std::size_t id) const;
  /// With `floor` 0. For several threads at once.
  MixedPlan plan(std::size_t id) const;

  std::int64_t cuts() const { return std::ssize(cuts_); }
  std::int64_t division_count() const { return division_count_; }
  const LeftOut& left_out() const { return left_out_; }
  /// The error of a space without plans: what was left out and why.
  [[noreturn]] void nothing_fits() const;

 private:
  /// Some pipelines of a leaf.
  struct Kind {
    std::size_t form = 0;
    std::int64_t pipelines = 0, microbatches = 0;
    const PipelineFit* fit = nullptr;
  };
  struct Leaf {
    std::size_t cut = 0;
    const Division* division = nullptr;
    std::vector<Kind> kinds;
    bool stage_by_stage = false;
    double busy_s = 0;
  };
  /// Cut, copies that optimizer states are shared by, and GPU types of the stages.
  using FitKey = std::tuple<std::size_t, std::int64_t, std::vector<std::size_t>>;
  using FirstRanks = std::vector<std::vector<std::vector<std::int32_t>>>;

  std::vector<Job> cuts_of(std::int64_t tp);
  bool allowed(Job cut);
  void add(const Division& division);
  const std::vector<PipelineFit>& fits_of(const std::vector<std::size_t>& types,
                                          std::int64_t copies);
  SplitProblem split_problem(const std::vector<std::size_t>& types, const Job& job);
  bool shorten(SplitProblem& split, const std::vector<std::int64_t>& layers, Job& job,
               const ModelMemory& memory) const;
  FirstRanks placed(const Leaf& leaf) const;
  const ModelMemory& memory_of(const Job& job) const;

  const MixedProblem& problem_;
  MixedBound& bound_;
  std::int64_t layers_;
  bool tied_ = false;
  std::vector<Job> cuts_;
  std::vector<std::unique_ptr<std::vector<Division>>> divisions_;
  std::int64_t division_count_ = 0;
  std::map<FitKey, std::vector<PipelineFit>> fits_;
  std::vector<Leaf> leaves_;
  LeftOut left_out_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, ModelMemory> memory_;
};

}  // namespace lockstep
