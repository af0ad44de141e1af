#pragma once

#include <cstdint>
#include <vector>

#include "planner/aceso/search/sweep.h"

namespace lockstep::aceso {

/// The best way to run a given stage.
struct StageSolution {
  double time_us = 0;
  std::vector<OpPlace> places;
  std::vector<char> recompute;
};

struct StageAnswer {
  double bound_us = 0;  ///< no way is faster; infinite if none fits
  bool found = false;   ///< `solution` is a way within the cap
  bool exact = true;    ///< nothing was dropped: `solution` is the best, or none is within the cap
  StageSolution solution;
  std::int64_t labels = 0;  ///< work done
};

/// The fastest (choice, flag) for each op of [first, end) within the memory limit, if it takes at
/// most `cap_us`.
///
/// A shortest path with a memory limit: labels (time, memory, open run, peak, reserves, weights)
/// are carried over the ops; one that another dominates, or whose Lagrangian completion bound
/// exceeds the cap, is dropped. The cap is raised from the bound in steps, so few labels are looked
/// at. More than `labels_an_op`: the most promising are kept and `exact` is false.
StageAnswer solve_stage(const Space& space, const StageKind& kind, const Lanes& ladder,
                        std::int64_t first, std::int64_t end, double cap_us,
                        std::int64_t labels_an_op);

/// What solve_stage() is asked, of one problem.
struct StageQuestion {
  std::int64_t microbatch = 1;  ///< of the pipeline
  int gpus = 1;
  StageKind kind;
  std::int64_t first = 0, end = 0;
  double cap_us = 0;
  std::int64_t labels_an_op = 0;
};

/// Answers that an earlier search of the same problem has worked out. Each is a function of its
/// question, work included, so that a search that takes them from here is the same to the last
/// label. Asked by several threads at once.
class SearchMemo {
 public:
  virtual ~SearchMemo() = default;
  virtual bool find(const StageQuestion& question, StageAnswer& answer) = 0;
  virtual void add(const StageQuestion& question, const StageAnswer& answer) = 0;
  /// PipelineSearch::least_bottleneck_us() by microbatch.
  virtual bool find_bottleneck(std::int64_t microbatch, double& us) = 0;
  virtual void add_bottleneck(std::int64_t microbatch, double us) = 0;
};

}  // namespace lockstep::aceso
