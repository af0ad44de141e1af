#include "analysis/whatif/causes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "analysis/whatif/numbers.h"
#include "analysis/whatif/step_patterns.h"

namespace lockstep::whatif {
namespace {

double saved(double then, double now) { return 1 - then / now; }

bool traces_peers(const OpTable& table) {
  return std::any_of(table.nodes.begin(), table.nodes.end(),
                     [](const OpNode& node) { return is_peer_comm(node.type); });
}

class Finder {
 public:
  /// The steps' patterns go to `out`.
  Finder(const Findings& found, StepPatterns patterns, Causes& out)
      : found_(found),
        table_(found.scene.table),
        slow_workers_(found.slow_workers),
        heavy_(found.heavy),
        uneven_(std::move(patterns.uneven)),
        communication_(std::move(patterns.communication)),
        out_(out) {
    out_.steps = std::move(patterns.steps);
  }

  /// First what is someone's fault, what saves most before, then what is the job's own.
  void find_causes() {
    const bool paused = pauses_save() >= kWorthNaming;
    if (slow_workers_.worth_naming()) {
      for (std::size_t i = 0; i < slow_workers_.workers.size(); ++i) {
        add_slow_worker(i);
      }
    } else if (found_.width() == 1 && out_.straggling && !paused && out_.workers.rem &&
               *out_.workers.rem >= kExplains) {
      add_lone_worker();
    }
    const bool no_peers = found_.width() == 1 && !out_.causes.empty();
    const double transfers = transfers_save();
    if (found_.transfers && transfers >= kWorthNaming &&
        !are_with_a_slow_worker(*found_.transfers)) {
      add_slow_transfers(transfers);
      last_to_front_if(transfers > workers_save());
    }
    if (paused) {
      add(Pattern::kGc, pauses_text());
      last_to_front_if(pauses_save() > std::max(workers_save(), transfers));
    }
    if (!out_.straggling || no_peers) {
      return;
    }
    const bool uneven = shows_sequence_length(out_.sequence_length);
    if (uneven) {
      add(Pattern::kSequenceLength,
          fmt::format("forward and backward times of the same microbatch go together (r = {:.3f} "
                      "after taking each worker's mean off), and forward times vary by {:.0f} %",
                      out_.sequence_length.correlation, 100 * out_.sequence_length.forward_cv));
    }
    if (stage_matters(uneven)) {
      add(Pattern::kStage, stage_text());
    }
    if (!out_.causes.empty()) {
      return;
    }
    if (communication_leads(found_.blocking.by_optype.labels, found_.blocking.by_optype.ratio)) {
      add(Pattern::kCommunication, communication_text());
    } else {
      add(Pattern::kMixed, "no worker, stage, transfer or kind of pass stands out");
    }
  }

 private:
  /// Peers that wait for a slow worker are late where the others' transfers are over, which are
  /// quicker for that.
  bool are_with_a_slow_worker(const SlowTransfers& slow) const {
    if (!slow_workers_.worth_naming() || slow.from != slow.to) {
      return false;
    }
    const auto is_slow = [&](std::uint32_t lane) {
      const std::size_t worker = static_cast<std::size_t>(slow.from) * found_.width() + lane;
      return std::ranges::count(slow_workers_.workers, worker) > 0;
    };
    const auto& groups = found_.scene.graph.scopes.of(Scope::kPeers);
    return std::ranges::any_of(groups, [&](const std::vector<std::uint32_t>& lanes) {
      return std::ranges::count(lanes, slow.lane) > 0 && std::ranges::any_of(lanes, is_slow);
    });
  }

  double transfers_save() const {
    return saved(pairwise_mean(found_.usual_transfers.span), mean_nodelay(found_.scene));
  }

  double pauses_save() const { return found_.pauses.moving ? found_.pauses.planned.saves : 0; }

  void last_to_front_if(bool saves_more) {
    if (saves_more) {
      std::rotate(out_.causes.begin(), out_.causes.end() - 1, out_.causes.end());
    }
  }

  bool last_stage_explains() const {
    return table_.stages > 1 && out_.stage.rem && *out_.stage.rem >= kExplains;
  }

  /// Beside workers or transfers that are slow, or pauses: if alike stages would save half as much.
  bool stage_matters(bool uneven) const {
    const double saves = rebalancing().saves;
    const bool heavy = !heavy_.stages.empty() && saves >= kWorthNaming;
    if (out_.causes.size() == (uneven ? 1 : 0)) {
      return last_stage_explains() || heavy;
    }
    const double fault = std::max({workers_save(), transfers_save(), pauses_save()});
    return heavy && saves >= kExplains * fault;
  }

  /// Share of the slow steps for which `shows` holds; of all if none is slow.
  template <class Shows>
  double share(Shows&& shows) const {
    const bool any = std::ranges::any_of(
        out_.steps, [](const StepPattern& step) { return step.slowdown >= kStraggling; });
    double slow = 0, showing = 0;
    for (std::size_t s = 0; s < out_.steps.size(); ++s) {
      if (!any || out_.steps[s].slowdown >= kStraggling) {
        slow += 1;
        showing += shows(s) ? 1 : 0;
      }
    }
    return slow > 0 ? showing / slow : 0;
  }

  void add(Pattern pattern, std::string evidence) {
    add(pattern, std::move(evidence), out_.slowest.front());
  }

  /// `worker`: of whom it is told, where it is told of one.
  void add(Pattern pattern, std::string evidence, std::size_t worker) {
    const double confidence = share([&](std::size_t s) {
      switch (pattern) {
        case Pattern::kWorker:
          return found_.width() > 1 ? found_.is_slow_in(worker, s) : out_.steps[s].worker == worker;
        case Pattern::kStage:
          return out_.steps[s].stage + 1 == table_.stages ||
                 std::ranges::count(heavy_.stages, out_.steps[s].stage) > 0;
        case Pattern::kSequenceLength:
          return uneven_[s] != 0;
        case Pattern::kCommunication:
          return communication_[s] || saved(found_.usual_transfers.span[s],
                                            found_.scene.model.nodelay.span[s]) >= kWorthNaming;
        case Pattern::kGc:
          return found_.pauses_explain(s);
        default:
          return out_.steps[s].pattern == pattern;
      }
    });
    out_.causes.push_back({.pattern = pattern,
                           .confidence = confidence,
                           .evidence = std::move(evidence),
                           .ranks = {},
                           .what = {}});
  }

  /// Mean duration of a type, of one worker or (if `others`) of the others: those of its stage, or
  /// of the other stages if there is one found_.width()rank.
  double mean_of(TraceOp type, std::size_t worker, bool others, std::size_t step) const {
    double sum = 0, count = 0;
    for (std::size_t n = 0; n < table_.nodes.size(); ++n) {
      const OpNode& node = table_.nodes[n];
      const bool own_stage = static_cast<std::size_t>(node.stage) == worker / found_.width();
      if (node.type != type || (!own_stage && !(others && found_.width() == 1))) {
        continue;
      }
      for (std::size_t d = 0; d < found_.width(); ++d) {
        const bool own = own_stage && d == worker % found_.width();
        if (own != others) {
          sum += static_cast<double>(table_.duration(n)[step * found_.width() + d]);
          count += 1;
        }
      }
    }
    return count > 0 ? sum / count : 0;
  }

  const Remedy& remedy(std::string_view name) const {
    return *std::ranges::find(out_.remedies, name, &Remedy::name);
  }
  const Remedy& replacing() const { return remedy("replace-worker"); }
  double workers_save() const {
    return slow_workers_.together ? slow_workers_.together->saves : replacing().saves;
  }
  const Remedy& rebalancing() const { return remedy("rebalance-stages"); }

  void add_lone_worker() {
    add(Pattern::kWorker,
        lone_worker_text() +
            fmt::format("; replacing it by the mean of all stages would save {:.0f} % of step "
                        "time; a heavy stage would look the same, as this one has no other worker",
                        100 * replacing().saves));
    out_.causes.back().ranks = {table_.ranks[out_.slowest.front()]};
  }

  /// What the i-th of the slow workers costs.
  std::string cost_text(std::size_t i) const {
    const SlowWorkers& slow = slow_workers_;
    if (i > 0) {
      return fmt::format("; it alone would cost {:.0f} % of step time", 100 * slow.alone[i]);
    }
    return fmt::format("; replacing it would save {:.0f} % of step time", 100 * slow.first->saves) +
           (slow.together ? fmt::format(", replacing all {} slow ones {:.0f} %",
                                        slow.workers.size(), 100 * slow.together->saves)
                          : "");
  }

  void add_slow_worker(std::size_t i) {
    const std::size_t worker = slow_workers_.workers[i];
    const std::int32_t rank = table_.ranks[worker];
    const std::optional<SlowPasses> slow = slow_passes(table_, worker);
    if (!slow) {
      add(Pattern::kWorker,
          fmt::format("rank {} computes longer than its peers", rank) + cost_text(i), worker);
      out_.causes.back().ranks = {rank};
      return;
    }
    std::size_t steps = 0;
    for (std::size_t s = 0; s < table_.steps.size(); ++s) {
      steps += found_.is_slow_in(worker, s) ? 1U : 0U;
    }
    add(Pattern::kWorker,
        fmt::format("rank {} is {:.3g} times slower in {} in {} of {} steps", rank, slow->factor,
                    to_text(slow->type), steps, table_.steps.size()) +
            (slow->slow == slow->passes
                 ? ""
                 : fmt::format(", in {} of {} passes", slow->slow, slow->passes)) +
            cost_text(i),
        worker);
    Cause& cause = out_.causes.back();
    cause.ranks = {rank};
    cause.what = to_text(slow->type);
    cause.factor = slow->factor;
  }

  void add_slow_transfers(double saves) {
    const SlowTransfers& slow = *found_.transfers;
    const auto dp_rank = static_cast<std::size_t>(place_of(table_, slow.lane).dp_rank);
    std::vector<std::int32_t> ranks = {table_.rank(slow.from, slow.lane)};
    std::string between = fmt::format("of stage {} in dp_rank {}", slow.from, dp_rank);
    if (slow.from != slow.to) {
      ranks.push_back(table_.rank(slow.to, slow.lane));
      between = fmt::format("from rank {} to rank {} (dp_rank {}, stages {} and {})", ranks[0],
                            ranks[1], dp_rank, slow.from, slow.to);
    }
    add(Pattern::kCommunication,
        fmt::format("{} {} takes {:.3g} times as long as its peers'{}; as quick as theirs, a step "
                    "would save {:.0f} % of its time",
                    slow.what, between, slow.factor,
                    slow.places > 1 ? fmt::format(", and {} more do", slow.places - 1) : "",
                    100 * saves));
    Cause& cause = out_.causes.back();
    cause.ranks = std::move(ranks);
    cause.what = slow.what;
    cause.factor = slow.factor;
  }

  /// Without peers: beside the other stages' workers.
  std::string lone_worker_text() const {
    const std::size_t worker = out_.slowest.front();
    std::string text;
    double largest_ratio = 0;
    for (const auto& [type, peer_comm] : kTracePasses) {
      double sum = 0, steps = 0, slow = 0;
      for (std::size_t s = 0; s < table_.steps.size(); ++s) {
        const double others = mean_of(type, worker, true, s);
        if (others > 0) {
          const double ratio = mean_of(type, worker, false, s) / others;
          sum += ratio;
          steps += 1;
          slow += ratio >= kStraggling ? 1 : 0;
        }
      }
      if (steps > 0 && sum / steps > largest_ratio) {
        largest_ratio = sum / steps;
        text = fmt::format("rank {} is {:.3g} times slower in {} in {} of {} steps",
                           table_.ranks[worker], largest_ratio, to_text(type), slow, steps);
      }
    }
    return text;
  }

  std::string stage_text() const {
    const std::string saves =
        fmt::format("; with all stages alike a step would save {:.0f} % of its time",
                    100 * rebalancing().saves);
    const bool last_alone = heavy_.stages.empty() ||
                            (heavy_.stages.size() == 1 && heavy_.stages[0] + 1 == table_.stages);
    if (last_alone && last_stage_explains()) {
      return fmt::format("the last stage, {}, explains {:.0f} % of what is lost", table_.stages - 1,
                         100 * *out_.stage.rem) +
             saves;
    }
    std::string text = "passes take longer than on the other stages: ";
    for (std::size_t i = 0; i < heavy_.stages.size(); ++i) {
      text += fmt::format("{}{:.3g} times on stage {}", i > 0 ? ", " : "", heavy_.factors[i],
                          heavy_.stages[i]);
    }
    return text + saves;
  }

  std::string pauses_text() const {
    return fmt::format(
        "single passes take {:.3g} s longer than the others of their stage, {} on {} of {} "
        "workers; if all paused at the same time a step would save {:.0f} % of its time",
        found_.pauses.typical_s, found_.pauses.outliers.size(), found_.pauses.workers,
        table_.ranks.size(), 100 * found_.pauses.planned.saves);
  }

  std::string communication_text() const {
    const auto& labels = found_.blocking.by_optype.labels;
    std::size_t top = 0;
    double ratio = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (is_comm_label(labels[i]) && found_.blocking.by_optype.ratio[i] > ratio) {
        ratio = found_.blocking.by_optype.ratio[i];
        top = i;
      }
    }
    return fmt::format("{} alone makes a step {:.3g} times as long, more than computation does",
                       labels[top], ratio);
  }

  const Findings& found_;
  const OpTable& table_;
  const SlowWorkers& slow_workers_;  // the first of out_.slowest
  const HeavyStages& heavy_;
  std::vector<char> uneven_;
  std::vector<bool> communication_;
  Causes& out_;
};

}  // namespace

std::string_view to_text(Pattern pattern) {
  switch (pattern) {
    case Pattern::kNone:
      return "none";
    case Pattern::kWorker:
      return "worker";
    case Pattern::kStage:
      return "stage";
    case Pattern::kSequenceLength:
      return "sequence-length";
    case Pattern::kGc:
      return "gc";
    case Pattern::kCommunication:
      return "communication";
    case Pattern::kOneOff:
      return "one-off";
    case Pattern::kMixed:
      return "mixed";
  }
  return "mixed";
}

Causes find_causes(const Scene& scene, const Decompositions& blocking,
                   std::vector<double> by_worker, const std::vector<std::vector<double>>& per_step,
                   const Contribution& stage) {
  Causes out;
  out.slowdown = blocking_slowdown(scene);
  out.waste = 1 - 1 / out.slowdown;
  out.straggling = out.slowdown >= kStraggling;
  out.workers = contribution(scene, slowest_workers(scene.table, by_worker));
  out.stage = stage;

  out.slowest.resize(by_worker.size());
  std::iota(out.slowest.begin(), out.slowest.end(), std::size_t{0});
  std::sort(out.slowest.begin(), out.slowest.end(), [&](std::size_t a, std::size_t b) {
    return by_worker[a] != by_worker[b] ? by_worker[a] > by_worker[b]
                                        : scene.table.ranks[a] < scene.table.ranks[b];
  });
  out.by_worker = std::move(by_worker);

  const Pauses pauses = find_pauses(scene);
  out.sequence_length = sequences_of(scene.table, {}, pauses);
  const ComputeExcess traced = compute_excess(scene.table, true);
  ComputeExcess compute = traced;
  leave_out(scene.table, pauses.if_moving(), compute);
  const SlowWorkers slow_workers = find_slow_workers(scene, compute, out.sequence_length);
  std::stable_partition(out.slowest.begin(), out.slowest.end(), [&](std::size_t worker) {
    return std::ranges::count(slow_workers.workers, worker) > 0;
  });
  std::ranges::copy(slow_workers.workers, out.slowest.begin());
  while (out.slowest.size() > 10) {
    out.slowest.pop_back();
  }
  out.remedies = {
      slow_workers.first ? *slow_workers.first : replace_worker(scene, out.slowest.front()),
      rebalance_stages(scene), pauses.planned, faster_links(scene, Links::kBetweenStages),
      faster_links(scene, Links::kReplicas)};
  if (shows_sequence_length(out.sequence_length)) {
    out.remedies.push_back(redistribute_sequences(scene));
  }
  if (slow_workers.together) {
    out.remedies.push_back(*slow_workers.together);
  }
  if (traces_peers(scene.table)) {
    out.remedies.push_back(faster_links(scene, Links::kPeers));
  }
  const std::optional<SlowTransfers> transfers = slow_transfers(scene);
  StepTimes usual_transfers = transfers ? with_usual_transfers(scene) : scene.model.nodelay;
  if (transfers) {
    const double then = pairwise_mean(usual_transfers.span);
    out.remedies.push_back({"mend-transfers", "transfers as quick as those of the other dp_ranks",
                            then, saved(then, mean_nodelay(scene))});
  }
  std::stable_sort(out.remedies.begin(), out.remedies.end(),
                   [](const Remedy& a, const Remedy& b) { return a.saves > b.saves; });
  const Findings found{.scene = scene,
                       .blocking = blocking,
                       .per_step = per_step,
                       .pauses = pauses,
                       .traced = traced,
                       .compute = compute,
                       .slow_workers = slow_workers,
                       .heavy = heavy_stages(scene.table, compute),
                       .transfers = transfers,
                       .usual_transfers = std::move(usual_transfers)};
  Finder finder(found, find_step_patterns(found), out);
  finder.find_causes();
  return out;
}

}  // namespace lockstep::whatif
