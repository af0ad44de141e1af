#include "analysis/whatif/causes.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "analysis/whatif/numbers.h"
#include "analysis/whatif/pauses.h"
#include "analysis/whatif/slow_workers.h"
#include "base/parallel.h"

namespace lockstep::whatif {
namespace {

constexpr double kStraggling = 1.1;     // S of a straggling job
constexpr double kExplains = 0.5;       // M_W, M_S that name the culprit
constexpr double kOneOffSlower = 1.25;  // than the median step

std::size_t largest(const std::vector<double>& v) {
  return static_cast<std::size_t>(std::max_element(v.begin(), v.end()) - v.begin());
}

double saved(double then, double now) { return 1 - then / now; }

bool traces_peers(const OpTable& table) {
  return std::any_of(table.nodes.begin(), table.nodes.end(),
                     [](const OpNode& node) { return is_peer_comm(node.type); });
}

/// Whether the largest explains half of the excess and the second less than half as much as it.
bool stands_out(const std::vector<double>& ratios, double slowdown) {
  const std::size_t top = largest(ratios);
  double second = 1;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    if (i != top) {
      second = std::max(second, ratios[i]);
    }
  }
  return ratios[top] - 1 >= kExplains * (slowdown - 1) && second - 1 < (ratios[top] - 1) / 2;
}

bool is_compute_label(const std::string& label) {
  return std::ranges::any_of(kTracePasses,
                             [&](const TracePass& pass) { return label == to_text(pass.compute); });
}
bool is_comm_label(const std::string& label) {
  return !is_compute_label(label) && label != to_text(TraceOp::kGc) &&
         label != to_text(TraceOp::kOptimizer);
}

/// The largest ratio of the labels that `accept` takes; 1 if there is none.
template <class Accept>
double most(const std::vector<std::string>& labels, const std::vector<double>& ratios,
            Accept&& accept) {
  double value = 1;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (accept(labels[i])) {
      value = std::max(value, ratios[i]);
    }
  }
  return value;
}

/// Pauses hide that passes go together.
SequenceLengthSign sequences_of(const OpTable& table, const std::vector<std::size_t>& steps,
                                const Pauses& pauses) {
  const SequenceLengthSign sign = sequence_length_sign(table, steps);
  return shows_sequence_length(sign) || !pauses.moving
             ? sign
             : sequence_length_sign(table, steps, pauses.outliers);
}

bool communication_leads(const std::vector<std::string>& labels,
                         const std::vector<double>& ratios) {
  return most(labels, ratios, is_comm_label) > most(labels, ratios, is_compute_label);
}

class Finder {
 public:
  Finder(const Scene& scene, const Decompositions& blocking,
         const std::vector<std::vector<double>>& per_step, const Pauses& pauses,
         const ComputeExcess& traced, const ComputeExcess& compute, const SlowWorkers& slow_workers,
         const std::optional<SlowTransfers>& transfers, StepTimes usual_transfers, Causes& out)
      : scene_(scene),
        table_(scene.table),
        width_(scene.table.width()),
        blocking_(blocking),
        per_step_(per_step),
        pauses_(pauses),
        traced_(traced),
        compute_(compute),
        slow_workers_(slow_workers),
        heavy_(heavy_stages(scene.table, compute)),
        transfers_(transfers),
        usual_transfers_(std::move(usual_transfers)),
        out_(out),
        uneven_(scene.table.steps.size(), 0) {}

  void find_step_patterns() {
    for_each_in_parallel(uneven_.size(), threads_for(table_.size()), [&](std::size_t s) {
      uneven_[s] = shows_sequence_length(sequences_of(table_, {s}, pauses_)) ? 1 : 0;
    });
    std::vector<double> slowdowns;
    for (std::size_t s = 0; s < table_.steps.size(); ++s) {
      slowdowns.push_back(scene_.model.nodelay.span[s] / scene_.model.ideal.optimizer[s]);
      communication_.push_back(
          communication_leads(blocking_.by_optype.labels, blocking_.by_optype.per_step[s]));
    }
    std::vector<double> sorted = slowdowns;
    const double middle = median(std::span<double>(sorted));
    std::vector<std::size_t> workers;
    for (std::size_t s = 0; s < slowdowns.size(); ++s) {
      workers.push_back(slowest_worker(s, compute_));
    }
    usual_worker_ = width_ > 1 ? with_usual_worker(scene_, workers) : scene_.model.nodelay;
    for (std::size_t s = 0; s < slowdowns.size(); ++s) {
      StepPattern step{.step = table_.steps[s], .slowdown = slowdowns[s]};
      step.stage = static_cast<std::int32_t>(largest(blocking_.by_stage.per_step[s]));
      step.pattern = pattern_of(s, slowdowns[s], middle);
      step.worker = step.pattern == Pattern::kGc ? slowest_worker(s, traced_) : workers[s];
      out_.steps.push_back(step);
    }
  }

  /// First what is someone's fault, what saves most before, then what is the job's own.
  void find_causes() {
    const bool paused = pauses_save() >= kWorthNaming;
    if (slow_workers_.worth_naming()) {
      for (std::size_t i = 0; i < slow_workers_.workers.size(); ++i) {
        add_slow_worker(i);
      }
    } else if (width_ == 1 && out_.straggling && !paused && out_.workers.rem &&
               *out_.workers.rem >= kExplains) {
      add_lone_worker();
    }
    const bool no_peers = width_ == 1 && !out_.causes.empty();
    const double transfers = transfers_save();
    if (transfers_ && transfers >= kWorthNaming && !are_with_a_slow_worker(*transfers_)) {
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
    if (communication_leads(blocking_.by_optype.labels, blocking_.by_optype.ratio)) {
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
      const std::size_t worker = static_cast<std::size_t>(slow.from) * width_ + lane;
      return std::ranges::count(slow_workers_.workers, worker) > 0;
    };
    const auto& groups = scene_.graph.scopes.of(Scope::kPeers);
    return std::ranges::any_of(groups, [&](const std::vector<std::uint32_t>& lanes) {
      return std::ranges::count(lanes, slow.lane) > 0 && std::ranges::any_of(lanes, is_slow);
    });
  }

  /// Of a step: by what its computation takes more than its peers', or by S_w without peers.
  std::size_t slowest_worker(std::size_t s, const ComputeExcess& compute) const {
    if (width_ == 1) {
      return largest(per_step_[s]);
    }
    const auto first = compute.late_s.begin() + static_cast<std::ptrdiff_t>(s * compute.workers);
    const auto most = std::max_element(first, first + static_cast<std::ptrdiff_t>(compute.workers));
    return *most > 0 ? static_cast<std::size_t>(most - first) : largest(per_step_[s]);
  }

  /// Whether a worker that is slower than its peers is so in a step, at least half as much.
  bool is_slow_in(std::size_t worker, std::size_t s) const {
    const std::size_t at = s * compute_.workers + worker;
    return compute_.late_s[at] >=
           compute_.usual_s[at] * compute_.share(compute_.late_s, worker) / 2;
  }

  /// Of several, and of one beside pauses, neither of which explains half alone.
  bool has_slow_beside_others(std::size_t s) const {
    return (slow_workers_.together || (pauses_.moving && slow_workers_.worth_naming())) &&
           std::ranges::any_of(slow_workers_.workers,
                               [&](std::size_t worker) { return is_slow_in(worker, s); });
  }

  double transfers_save() const {
    return saved(pairwise_mean(usual_transfers_.span), mean_nodelay(scene_));
  }

  double pauses_save() const { return pauses_.moving ? pauses_.planned.saves : 0; }

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

  /// Whether what is lost in a step is half gone in a timeline.
  bool explains(const StepTimes& without, std::size_t s, double stays = 0) const {
    const double now = scene_.model.nodelay.span[s];
    return now - without.span[s] - stays >= kExplains * (now - scene_.model.ideal.optimizer[s]);
  }

  /// One stage's transfers make it stand out, too, so that where they waste more than computation
  /// its passes must be longer than other stages'.
  bool stage_explains(std::size_t s, double slowdown) const {
    const std::vector<double>& ratios = blocking_.by_stage.per_step[s];
    return table_.stages > 1 && stands_out(ratios, slowdown) &&
           (!communication_[s] ||
            std::ranges::count(heavy_.stages, static_cast<std::int32_t>(largest(ratios))) > 0);
  }

  /// Pauses of some workers, not those of all at once.
  bool pauses_explain(std::size_t s) const {
    return pauses_.moving && explains(pauses_.without, s, pauses_.shared_s[s]);
  }

  Pattern pattern_of(std::size_t s, double slowdown, double middle) const {
    if (slowdown < kStraggling) {
      return Pattern::kNone;
    }
    if (pauses_explain(s)) {
      return Pattern::kGc;
    }
    if (width_ > 1 ? explains(usual_worker_, s) || has_slow_beside_others(s)
                   : stands_out(per_step_[s], slowdown)) {
      return Pattern::kWorker;
    }
    if (explains(usual_transfers_, s)) {
      return Pattern::kCommunication;
    }
    if (uneven_[s] != 0) {
      return Pattern::kSequenceLength;
    }
    if (stage_explains(s, slowdown)) {
      return Pattern::kStage;
    }
    if (communication_[s]) {
      return Pattern::kCommunication;
    }
    if (slowdown < kOneOffSlower * middle) {
      return Pattern::kMixed;
    }
    const double without =
        (pauses_.without.span[s] + pauses_.shared_s[s]) / scene_.model.ideal.optimizer[s];
    return pauses_.moving && without < kOneOffSlower * middle ? Pattern::kGc : Pattern::kOneOff;
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
          return width_ > 1 ? is_slow_in(worker, s) : out_.steps[s].worker == worker;
        case Pattern::kStage:
          return out_.steps[s].stage + 1 == table_.stages ||
                 std::ranges::count(heavy_.stages, out_.steps[s].stage) > 0;
        case Pattern::kSequenceLength:
          return uneven_[s] != 0;
        case Pattern::kCommunication:
          return communication_[s] ||
                 saved(usual_transfers_.span[s], scene_.model.nodelay.span[s]) >= kWorthNaming;
        case Pattern::kGc:
          return pauses_explain(s);
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
  /// of the other stages if there is one width_rank.
  double mean_of(TraceOp type, std::size_t worker, bool others, std::size_t step) const {
    double sum = 0, count = 0;
    for (std::size_t n = 0; n < table_.nodes.size(); ++n) {
      const OpNode& node = table_.nodes[n];
      const bool own_stage = static_cast<std::size_t>(node.stage) == worker / width_;
      if (node.type != type || (!own_stage && !(others && width_ == 1))) {
        continue;
      }
      for (std::size_t d = 0; d < width_; ++d) {
        const bool own = own_stage && d == worker % width_;
        if (own != others) {
          sum += static_cast<double>(table_.duration(n)[step * width_ + d]);
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
      steps += is_slow_in(worker, s) ? 1U : 0U;
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
    const SlowTransfers& slow = *transfers_;
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
        pauses_.typical_s, pauses_.outliers.size(), pauses_.workers, table_.ranks.size(),
        100 * pauses_.planned.saves);
  }

  std::string communication_text() const {
    const auto& labels = blocking_.by_optype.labels;
    std::size_t top = 0;
    double ratio = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (is_comm_label(labels[i]) && blocking_.by_optype.ratio[i] > ratio) {
        ratio = blocking_.by_optype.ratio[i];
        top = i;
      }
    }
    return fmt::format("{} alone makes a step {:.3g} times as long, more than computation does",
                       labels[top], ratio);
  }

  const Scene& scene_;
  const OpTable& table_;
  std::size_t width_;
  const Decompositions& blocking_;
  const std::vector<std::vector<double>>& per_step_;
  const Pauses& pauses_;
  const ComputeExcess& traced_;
  const ComputeExcess& compute_;     // without pauses that move over the workers
  const SlowWorkers& slow_workers_;  // the first of out_.slowest
  HeavyStages heavy_;
  const std::optional<SlowTransfers>& transfers_;
  StepTimes usual_transfers_, usual_worker_;  // T without the slow ones
  Causes& out_;
  std::vector<char> uneven_;
  std::vector<bool> communication_;
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
  Finder finder(scene, blocking, per_step, pauses, traced, compute, slow_workers, transfers,
                std::move(usual_transfers), out);
  finder.find_step_patterns();
  finder.find_causes();
  return out;
}

}  // namespace lockstep::whatif
