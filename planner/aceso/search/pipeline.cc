#include "planner/aceso/search/pipeline.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace lockstep::aceso {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();

/// Every op at its slowest choice and recomputed, with its dearest change of layout, receive and
/// send.
double slowest_way(const Space& space) {
  double total = 0, transfer = 0;
  for (std::size_t op = 0; !space.empty() && op < space.op_row.size(); ++op) {
    const auto at = static_cast<std::int64_t>(op);
    double slowest = 0, step_us = 0;
    for (std::size_t c = 0; c < space.choices.size(); ++c) {
      slowest = std::max(slowest, space.at(at, c).time_us + space.at(at, c).forward_us);
      for (const bool crosses : {false, true}) {
        transfer = std::max(transfer, space.receive(at, c, crosses, false));
        for (int t = 0; t <= space.tensor_index.back(); ++t) {
          transfer = std::max(transfer, space.send(t, at, c, crosses, false));
        }
      }
    }
    if (space.pair[op] >= 0) {
      for (const Step& step : space.steps[static_cast<std::size_t>(space.pair[op])]) {
        step_us = std::max(step_us, step.us);
      }
    }
    total += slowest + step_us;
  }
  return total + 2 * transfer;
}

}  // namespace

PipelineSearch::PipelineSearch(const Problem& problem, std::int64_t microbatch, SearchMemo* memo,
                               std::function<bool()> stop)
    : problem_(problem),
      memo_(memo),
      stop_(std::move(stop)),
      microbatch_(microbatch),
      microbatches_(problem.global_batch / microbatch),
      gpus_(problem.cluster.gpus()) {
  const Database& database = *problem.database;
  std::int64_t layers = 0;
  for (const int row : database.ops) {
    const bool begins =
        database.names[static_cast<std::size_t>(row)].find("1st-layernorm") != std::string::npos;
    layer_.push_back(begins ? ++layers : 0);
  }
  // Of each op over all numbers of GPUs, in which stages may differ.
  std::vector<double> least(static_cast<std::size_t>(problem.ops()), kFar);
  for (int gpus = 1; gpus <= std::min(8, problem.cluster.gpus_per_node) && gpus <= gpus_;
       gpus *= 2) {
    spaces_.push_back(make_space(problem, microbatch, gpus));
    const Space& space = spaces_.back();
    ladders_.push_back(space.empty() ? Lanes{} : price_ladder(space));
    most_stage_ = std::max(most_stage_, slowest_way(space));
    for (std::int64_t op = 0; !space.empty() && op < problem.ops(); ++op) {
      double& least_of_op = least[static_cast<std::size_t>(op)];
      for (std::size_t c = 0; c < space.choices.size(); ++c) {
        if (space.at(op, c).allowed) {
          least_of_op = std::min(least_of_op, space.at(op, c).time_us);
        }
      }
    }
  }
  least_sum_ = std::accumulate(least.begin(), least.end(), 0.0);
}

bool PipelineSearch::empty() const {
  return std::all_of(spaces_.begin(), spaces_.end(),
                     [](const Space& space) { return space.empty(); });
}

StageKind PipelineSearch::kind(int behind, int first_gpu, int gpus) const {
  StageKind kind;
  kind.in_flight = behind + 1;
  if (problem_.flavour == Flavour::kFixed) {
    kind.in_flight = std::min(kind.in_flight, microbatches_);
    kind.reserve_last = true;
  }
  kind.weight_copies = problem_.weight_copies();
  kind.limit = problem_.limit();
  const int node = problem_.cluster.gpus_per_node;
  kind.receives_across = first_gpu > 0 && first_gpu % node == 0;
  kind.sends_across = (first_gpu + gpus) % node == 0;
  return kind;
}

bool PipelineSearch::legal(int first_gpu, int gpus) const {
  const int node = problem_.cluster.gpus_per_node;
  return first_gpu + gpus <= gpus_ && first_gpu / node == (first_gpu + gpus - 1) / node;
}

bool PipelineSearch::may_cut(std::int64_t op) const {
  if (layers_apart_ == 0 || op == problem_.ops()) {
    return true;
  }
  const std::int64_t layer = layer_[static_cast<std::size_t>(op)];
  return layer > 0 && (layer - 1) % layers_apart_ == 0;
}

void PipelineSearch::reach(double time_us) {
  if (time_us == reach_time_) {
    return;
  }
  reach_time_ = time_us;
  const int most = std::min({problem_.max_stages, gpus_, static_cast<int>(problem_.ops())});
  start_.assign(static_cast<std::size_t>(most) + 1,
                std::vector<std::int64_t>(static_cast<std::size_t>(gpus_) + 1, kNowhere));
  start_[0][0] = problem_.ops();
  for (int stages = 1; stages <= most; ++stages) {
    for (int used = 1; used <= gpus_; ++used) {
      std::int64_t& best = start_[static_cast<std::size_t>(stages)][static_cast<std::size_t>(used)];
      for (std::size_t log = 0; log < spaces_.size() && (1 << log) <= used; ++log) {
        const int gpus = 1 << log;
        const std::int64_t end =
            start_[static_cast<std::size_t>(stages) - 1][static_cast<std::size_t>(used - gpus)];
        if (spaces_[log].empty() || end == kNowhere || !legal(gpus_ - used, gpus)) {
          continue;
        }
        best = std::min(
            best, end <= 1 ? 0
                           : furthest_start(spaces_[log], kind(stages - 1, gpus_ - used, gpus),
                                            ladders_[log], end, time_us));
      }
    }
  }
}

bool PipelineSearch::may_reach(int stages, double slowest_us) {
  reach(slowest_us);
  return static_cast<std::size_t>(stages) < start_.size() &&
         start_[static_cast<std::size_t>(stages)].back() == 0;
}

double PipelineSearch::least_bottleneck_us() {
  double us = 0;
  if (memo_ != nullptr && memo_->find_bottleneck(microbatch_, us)) {
    return us;
  }
  us = bisected_bottleneck_us();
  if (memo_ != nullptr) {
    memo_->add_bottleneck(microbatch_, us);
  }
  return us;
}

double PipelineSearch::bisected_bottleneck_us() {
  const auto any = [&](double time) {
    reach(time);
    return std::any_of(start_.begin() + 1, start_.end(),
                       [](const auto& by_gpus) { return by_gpus.back() == 0; });
  };
  double low = least_sum_ / gpus_ / 16;
  double high = low;
  while (!any(high)) {
    low = high;
    high *= 2;
    if (low > most_stage_) {
      return kFar;
    }
  }
  while (high > low * 1.002) {
    const double middle = (low + high) / 2;
    (any(middle) ? high : low) = middle;
  }
  return low;
}

PipelineSearch::Key PipelineSearch::key_of(int behind, const Node& node, const Edge& edge) const {
  const StageKind where = kind(behind, node.first_gpu, 1 << edge.gpus_log);
  const int place = (where.receives_across ? 1 : 0) + (where.sends_across ? 2 : 0);
  return {behind, place, edge.gpus_log, node.op, edge.end};
}

const PipelineSearch::Known* PipelineSearch::known(int behind, const Node& node,
                                                   const Edge& edge) const {
  const auto found = known_.find(key_of(behind, node, edge));
  return found == known_.end() ? nullptr : &found->second;
}

void PipelineSearch::add_edges(int stage, int stages, int index, double time_us) {
  const int behind = stages - 1 - stage;
  Node& node = nodes_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(index)];
  for (std::size_t log = 0; log < spaces_.size(); ++log) {
    const int gpus = 1 << log;
    const int left = gpus_ - node.first_gpu - gpus;
    if (spaces_[log].empty() || left < behind || !legal(node.first_gpu, gpus)) {
      continue;
    }
    const std::int64_t from =
        start_[static_cast<std::size_t>(behind)][static_cast<std::size_t>(left)];
    if (from == kNowhere) {
      continue;
    }
    const std::int64_t to = problem_.ops() - behind;
    sweep_forward(spaces_[log], kind(behind, node.first_gpu, gpus), ladders_[log], node.op, time_us,
                  [&](std::int64_t end, double bound) {
                    if (bound > time_us || end < from || end > to ||
                        (behind == 0 && end != problem_.ops()) || !may_cut(end)) {
                      return;
                    }
                    Edge edge{.lower = bound, .gpus_log = static_cast<int>(log), .end = end};
                    const Known* before = known(behind, node, edge);
                    if (before != nullptr) {
                      edge.lower = before->labels == 0 ? std::max(bound, before->lower) : bound;
                      edge.exact = before->exact && before->labels == 0;
                    }
                    if (edge.lower <= time_us) {
                      node.edges.push_back(edge);
                    }
                  });
  }
}

void PipelineSearch::build(int stages, double time_us, double) {
  nodes_.assign(static_cast<std::size_t>(stages) + 1, {});
  node_of_.assign(static_cast<std::size_t>(stages) + 1, {});
  nodes_[0].push_back({});
  for (int stage = 0; stage < stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    for (std::size_t n = 0; n < nodes_[at].size(); ++n) {
      add_edges(stage, stages, static_cast<int>(n), time_us);
      for (Edge& edge : nodes_[at][n].edges) {
        const std::pair key(nodes_[at][n].first_gpu + (1 << edge.gpus_log), edge.end);
        const auto [place, fresh] =
            node_of_[at + 1].emplace(key, static_cast<int>(nodes_[at + 1].size()));
        if (fresh) {
          nodes_[at + 1].push_back({key.first, key.second, {}});
        }
        edge.to = place->second;
      }
    }
  }
}

void PipelineSearch::price_fronts(int stages, double beat_us) {
  fronts_.assign(static_cast<std::size_t>(stages) + 1, {});
  changed_.assign(fronts_.size(), {});
  fronts_.back().assign(nodes_.back().size(), {});
  changed_.back().assign(nodes_.back().size(), 0);
  for (std::size_t n = 0; n < nodes_.back().size(); ++n) {
    if (nodes_.back()[n].first_gpu == gpus_ && nodes_.back()[n].op == problem_.ops()) {
      fronts_.back()[n].push_back({});
    }
  }
  front_work_ = 0;
  for (std::size_t stage = static_cast<std::size_t>(stages); stage-- > 0;) {
    fronts_[stage].assign(nodes_[stage].size(), {});
    changed_[stage].assign(nodes_[stage].size(), 0);
    for (std::size_t n = 0; n < nodes_[stage].size(); ++n) {
      front_work_ += static_cast<std::int64_t>(nodes_[stage][n].edges.size()) / 8;
      price_front(stage, n, beat_us);
    }
  }
}

/// The pipelines from a node on that no other beats in both slowest stage and sum.
void PipelineSearch::price_front(std::size_t stage, std::size_t node, double beat_us) {
  std::vector<Entry>& front = fronts_[stage][node];
  front.clear();
  const std::vector<Edge>& edges = nodes_[stage][node].edges;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const auto& after = fronts_[stage + 1][static_cast<std::size_t>(edges[e].to)];
    // Slowest first to last, sums last to first: of those that this stage is slower than, the last.
    std::size_t f = 0;
    while (f + 1 < after.size() && after[f + 1].slowest <= edges[e].lower) {
      ++f;
    }
    for (; f < after.size(); ++f) {
      const Entry entry{std::max(edges[e].lower, after[f].slowest), edges[e].lower + after[f].sum,
                        static_cast<int>(e), static_cast<int>(f)};
      if (objective(entry.slowest, entry.sum) < beat_us) {
        front.push_back(entry);
      }
    }
  }
  std::sort(front.begin(), front.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.slowest, a.sum, a.edge, a.next) < std::tie(b.slowest, b.sum, b.edge, b.next);
  });
  double least = kFar;
  std::erase_if(front, [&](const Entry& entry) {
    if (entry.sum >= least) {
      return true;
    }
    least = entry.sum;
    return false;
  });
}

/// Works out again what the changed edges were part of. Edges only ever become slower, so that a
/// front that had none of them stays as it is.
void PipelineSearch::price_changed(double beat_us) {
  for (std::size_t stage = nodes_.size() - 1; stage-- > 0;) {
    for (std::size_t n = 0; n < nodes_[stage].size(); ++n) {
      bool stale = changed_[stage][n] != 0;
      for (const Entry& entry : fronts_[stage][n]) {
        const Edge& edge = nodes_[stage][n].edges[static_cast<std::size_t>(entry.edge)];
        stale = stale || changed_[stage + 1][static_cast<std::size_t>(edge.to)] != 0;
      }
      changed_[stage][n] = stale ? 1 : 0;
      if (stale) {
        price_front(stage, n, beat_us);
      }
    }
    std::fill(changed_[stage + 1].begin(), changed_[stage + 1].end(), 0);
  }
  std::fill(changed_[0].begin(), changed_[0].end(), 0);
}

StageAnswer PipelineSearch::solve(const StageQuestion& question) {
  StageAnswer answer;
  if (memo_ != nullptr && memo_->find(question, answer)) {
    return answer;
  }
  std::size_t log = 0;
  while ((1 << log) < question.gpus) {
    ++log;
  }
  answer = solve_stage(spaces_[log], question.kind, ladders_[log], question.first, question.end,
                       question.cap_us, question.labels_an_op);
  if (memo_ != nullptr) {
    memo_->add(question, answer);
  }
  return answer;
}

/// Prices the edge exactly, or takes it out of the graph where no way is within the cap. Returns
/// whether the answer is proven.
bool PipelineSearch::price_edge(int behind, Node& node, Edge& edge, double cap_us) {
  Known& place = known_[key_of(behind, node, edge)];
  const bool stale = place.labels > 0 && place.labels < labels_an_op_;  // dropped some then
  if ((stale || !place.exact) && place.lower <= cap_us) {
    const int gpus = 1 << edge.gpus_log;
    StageAnswer answer = solve({microbatch_, gpus, kind(behind, node.first_gpu, gpus), node.op,
                                edge.end, cap_us, labels_an_op_});
    work_ += answer.labels + (edge.end - node.op);
    place.labels = answer.exact ? 0 : labels_an_op_;
    if (answer.found && (!place.exact || answer.solution.time_us < place.lower)) {
      place.exact = true;
      place.lower = answer.solution.time_us;
      place.solution = std::move(answer.solution);
    } else if (!answer.found && answer.exact) {
      place.lower = std::max(cap_us * (1 + 1e-12), answer.bound_us);
    }
  }
  edge.exact = place.exact;
  edge.lower = place.exact ? place.lower : kFar;
  return place.labels == 0;
}

Plan PipelineSearch::plan_of(int stages, std::vector<std::pair<int, int>> path) {
  Plan plan{.global_batch = problem_.global_batch, .microbatch = microbatch_};
  for (int stage = 0; stage < stages; ++stage) {
    const auto [n, e] = path[static_cast<std::size_t>(stage)];
    const Node& node = nodes_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(n)];
    const Edge& edge = node.edges[static_cast<std::size_t>(e)];
    const Known& place = *known(stages - 1 - stage, node, edge);
    plan.stages.push_back({.gpus = 1 << edge.gpus_log,
                           .places = place.solution.places,
                           .recompute = place.solution.recompute});
  }
  return plan;
}

PipelineSearch::Found PipelineSearch::best(int stages, double slowest_us, double beat_us) {
  Found found;
  found.bound_us = kFar;
  reach(slowest_us);
  build(stages, slowest_us, beat_us);
  price_fronts(stages, beat_us);
  while (true) {
    work_ += front_work_;
    const std::vector<Entry>& front = fronts_[0][0];
    if (front.empty()) {
      found.bound_us = std::min(found.bound_us, beat_us);
      return found;
    }
    std::size_t chosen = 0;
    for (std::size_t f = 1; f < front.size(); ++f) {
      if (objective(front[f].slowest, front[f].sum) <
          objective(front[chosen].slowest, front[chosen].sum)) {
        chosen = f;
      }
    }
    const double value = objective(front[chosen].slowest, front[chosen].sum);
    if (found.exact) {
      found.bound_us = value;
    }
    std::vector<std::pair<int, int>> path;
    int node = 0;
    auto entry = static_cast<int>(chosen);
    bool priced = true;
    for (int stage = 0; stage < stages; ++stage) {
      const auto at = static_cast<std::size_t>(stage);
      const Entry& step =
          fronts_[at][static_cast<std::size_t>(node)][static_cast<std::size_t>(entry)];
      Edge& edge =
          nodes_[at][static_cast<std::size_t>(node)].edges[static_cast<std::size_t>(step.edge)];
      path.emplace_back(node, step.edge);
      if (!edge.exact) {
        priced = false;
        found.exact = price_edge(stages - 1 - stage, nodes_[at][static_cast<std::size_t>(node)],
                                 edge, slowest_us) &&
                      found.exact;
        changed_[at][static_cast<std::size_t>(node)] = 1;
      }
      node = edge.to;
      entry = step.next;
    }
    if (priced) {
      found.any = true;
      found.objective_us = value;
      found.plan = plan_of(stages, path);
      return found;
    }
    if (exhausted()) {
      found.exact = false;
      return found;
    }
    price_changed(beat_us);
  }
}

}  // namespace lockstep::aceso
