#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/aceso/search/stage_solver.h"

namespace lockstep::aceso {

/// The best pipelines at one microbatch: exact over cuts, GPUs of stages, and ways to run them.
///
/// Objective in us: (m - 1) * slowest stage + sum of all. Stages are priced lazily: a bound until a
/// pipeline that looks best needs the exact time. So the first pipeline whose stages are all exact
/// is the best, and the one before it a proven bound.
class PipelineSearch {
 public:
  /// `memo` may be nullptr; `stop` says when the work is to end, and may be empty.
  PipelineSearch(const Problem& problem, std::int64_t microbatch, SearchMemo* memo,
                 std::function<bool()> stop = {});

  /// Whether the profile has anything for this microbatch.
  bool empty() const;
  std::int64_t microbatches() const { return microbatches_; }
  /// No stage count has a pipeline whose slowest stage is faster; infinite if none fits at all.
  double least_bottleneck_us();
  /// Least sum over the stages of any pipeline.
  double least_sum_us() const { return least_sum_; }
  /// No way to run a stage takes longer, whatever its memory.
  double most_stage_us() const { return most_stage_; }
  double objective(double slowest_us, double sum_us) const {
    return static_cast<double>(microbatches_ - 1) * slowest_us + sum_us;
  }

  struct Found {
    bool any = false;
    double objective_us = 0;
    Plan plan;
    double bound_us = 0;  ///< of pipelines with that many stages and no stage slower than asked for
    bool exact = true;
  };
  /// The best pipeline of `stages` stages, each of at most `slowest_us`, that beats `beat_us`.
  Found best(int stages, double slowest_us, double beat_us);
  /// Whether a pipeline of so many stages may do with that slowest stage. After least_bottleneck_us
  /// or best() with another time the tables are made anew.
  bool may_reach(int stages, double slowest_us);

  std::int64_t work() const { return work_; }
  bool stopped() const { return stop_ && stop_(); }
  bool exhausted() const { return (max_work_ > 0 && work_ > max_work_) || stopped(); }
  /// Ends best() early after so much more work (0: never); how many labels a stage may have at one
  /// op; and which layers stages may begin with (0: with any op).
  void limit(std::int64_t more_work, std::int64_t labels_an_op, std::int64_t layers_apart) {
    layers_apart_ = layers_apart;
    max_work_ = more_work == 0 ? 0 : work_ + more_work;
    labels_an_op_ = labels_an_op;
  }

 private:
  struct Edge {
    int to = -1;
    double lower = 0;
    bool exact = false;
    int gpus_log = 0;
    std::int64_t end = 0;
  };
  struct Node {
    int first_gpu = 0;
    std::int64_t op = 0;
    std::vector<Edge> edges;
  };
  struct Entry {
    double slowest = 0, sum = 0;
    int edge = -1, next = -1;
  };
  struct Known {
    double lower = 0;
    bool exact = false;       ///< there is a solution; the best one unless labels were dropped
    std::int64_t labels = 0;  ///< the budget at which labels were dropped, else 0
    StageSolution solution;
  };
  using Key = std::tuple<int, int, int, std::int64_t, std::int64_t>;  // behind, kind, size, ops

  StageKind kind(int behind, int first_gpu, int gpus) const;
  bool legal(int first_gpu, int gpus) const;
  bool may_cut(std::int64_t op) const;
  double bisected_bottleneck_us();
  StageAnswer solve(const StageQuestion& question);
  void reach(double time_us);
  void build(int stages, double time_us, double beat_us);
  void add_edges(int stage, int stages, int node, double time_us);
  void price_fronts(int stages, double beat_us);
  void price_front(std::size_t stage, std::size_t node, double beat_us);
  void price_changed(double beat_us);
  Key key_of(int behind, const Node& node, const Edge& edge) const;
  const Known* known(int behind, const Node& node, const Edge& edge) const;
  bool price_edge(int behind, Node& node, Edge& edge, double cap_us);
  Plan plan_of(int stages, std::vector<std::pair<int, int>> path);

  const Problem& problem_;
  SearchMemo* memo_;
  std::function<bool()> stop_;
  std::int64_t microbatch_, microbatches_;
  int gpus_;
  std::vector<Space> spaces_;  ///< by log2 of the GPUs
  std::vector<Lanes> ladders_;
  double least_sum_ = 0, most_stage_ = 0;
  double reach_time_ = -1;
  std::vector<std::vector<std::int64_t>> start_;  ///< [stages][GPUs]: furthest start, or -1
  std::vector<std::vector<Node>> nodes_;          ///< [stage]
  std::vector<std::map<std::pair<int, std::int64_t>, int>> node_of_;
  std::vector<std::vector<std::vector<Entry>>> fronts_;  ///< [stage][node]
  std::vector<std::vector<char>> changed_;  ///< [stage][node]: an edge, or since then the front
  std::int64_t front_work_ = 0;             ///< of all fronts
  std::map<Key, Known> known_;
  std::int64_t layers_apart_ = 0;    ///< 0: cuts anywhere
  std::vector<std::int64_t> layer_;  ///< [op]: which layer begins there, from 1; 0 if none
  std::int64_t work_ = 0, max_work_ = 0, labels_an_op_ = 2000;
};

}  // namespace lockstep::aceso
