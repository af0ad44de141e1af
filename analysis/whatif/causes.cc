#include "analysis/whatif/causes.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "analysis/whatif/numbers.h"
#include "base/parallel.h"

namespace lockstep::whatif {
namespace {

constexpr double kStraggling = 1.1;     // S of a straggling job
constexpr double kExplains = 0.5;       // M_W, M_S that name the culprit
constexpr double kCorrelation = 0.9;    // r of uneven sequence lengths
constexpr double kVariation = 0.05;     // and the least variation of forward times
constexpr double kOneOffSlower = 1.25;  // than the median step

std::size_t largest(const std::vector<double>& v) {
  return static_cast<std::size_t>(std::max_element(v.begin(), v.end()) - v.begin());
}

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
  return label == to_text(TraceOp::kForwardCompute) || label == to_text(TraceOp::kBackwardCompute);
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

bool communication_leads(const std::vector<std::string>& labels,
                         const std::vector<double>& ratios) {
  return most(labels, ratios, is_comm_label) > most(labels, ratios, is_compute_label);
}

bool shows_sequence_length(const SequenceLengthSign& sign) {
  return sign.correlation >= kCorrelation && sign.forward_cv >= kVariation;
}

class Finder {
 public:
  Finder(const Scene& scene, const Decompositions& blocking,
         const std::vector<std::vector<double>>& per_step, const std::vector<Outlier>& outliers,
         Causes& out)
      : scene_(scene),
        table_(scene.table),
        width_(scene.table.width()),
        blocking_(blocking),
        per_step_(per_step),
        out_(out),
        gc_steps_(scene.table.steps.size(), 0),
        uneven_(scene.table.steps.size(), 0) {
    for (const Outlier& outlier : outliers) {
      gc_steps_[outlier.lane / width_] = 1;
    }
  }

  void find_step_patterns() {
    for_each_in_parallel(uneven_.size(), threads_for(table_.size()), [&](std::size_t s) {
      uneven_[s] = shows_sequence_length(sequence_length_sign(table_, {s})) ? 1 : 0;
    });
    std::vector<double> slowdowns;
    for (std::size_t s = 0; s < table_.steps.size(); ++s) {
      slowdowns.push_back(scene_.model.nodelay.span[s] / scene_.model.ideal.optimizer[s]);
      communication_.push_back(
          communication_leads(blocking_.by_optype.labels, blocking_.by_optype.per_step[s]));
    }
    std::vector<double> sorted = slowdowns;
    const double middle = median(std::span<double>(sorted));
    for (std::size_t s = 0; s < slowdowns.size(); ++s) {
      StepPattern step{.step = table_.steps[s], .slowdown = slowdowns[s]};
      step.worker = largest(per_step_[s]);
      step.stage = static_cast<std::int32_t>(largest(blocking_.by_stage.per_step[s]));
      step.pattern = pattern_of(s, slowdowns[s], middle);
      out_.steps.push_back(step);
    }
  }

  void find_causes() {
    const bool worker = out_.workers.rem && *out_.workers.rem >= kExplains;
    const bool stage = out_.stage.rem && *out_.stage.rem >= kExplains;
    const bool uneven = shows_sequence_length(out_.sequence_length);
    if (worker) {
      add(Pattern::kWorker, worker_text());
      return;
    }
    if (uneven) {
      add(Pattern::kSequenceLength,
          fmt::format("forward and backward times of the same microbatch go together (r = {:.3f} "
                      "after taking each worker's mean off), and forward times vary by {:.0f} %",
                      out_.sequence_length.correlation, 100 * out_.sequence_length.forward_cv));
    }
    if (stage) {
      add(Pattern::kStage, stage_text());
    }
    if (uneven || stage) {
      return;
    }
    if (communication_leads(blocking_.by_optype.labels, blocking_.by_optype.ratio)) {
      add(Pattern::kCommunication, communication_text());
    } else if (std::count(gc_steps_.begin(), gc_steps_.end(), 1) > 0) {
      add(Pattern::kGc,
          fmt::format("single forward passes took far longer than the others of "
                      "their stage in {} of {} steps",
                      std::count(gc_steps_.begin(), gc_steps_.end(), 1), table_.steps.size()));
    } else {
      add(Pattern::kMixed, "no worker, stage, transfer or kind of pass stands out");
    }
  }

 private:
  Pattern pattern_of(std::size_t s, double slowdown, double middle) const {
    if (slowdown < kStraggling) {
      return Pattern::kNone;
    }
    if (stands_out(per_step_[s], slowdown)) {
      return Pattern::kWorker;
    }
    if (uneven_[s] != 0) {
      return Pattern::kSequenceLength;
    }
    if (table_.stages > 1 && stands_out(blocking_.by_stage.per_step[s], slowdown)) {
      return Pattern::kStage;
    }
    if (communication_[s]) {
      return Pattern::kCommunication;
    }
    if (gc_steps_[s] != 0) {
      return Pattern::kGc;
    }
    return slowdown >= kOneOffSlower * middle ? Pattern::kOneOff : Pattern::kMixed;
  }

  /// Share of the slow steps for which `shows` holds.
  template <class Shows>
  double share(Shows&& shows) const {
    double slow = 0, showing = 0;
    for (std::size_t s = 0; s < out_.steps.size(); ++s) {
      if (out_.steps[s].slowdown >= kStraggling) {
        slow += 1;
        showing += shows(s) ? 1 : 0;
      }
    }
    return slow > 0 ? showing / slow : 0;
  }

  void add(Pattern pattern, std::string evidence) {
    const double confidence = share([&](std::size_t s) {
      switch (pattern) {
        case Pattern::kWorker:
          return out_.steps[s].worker == out_.slowest.front();
        case Pattern::kStage:
          return out_.steps[s].stage + 1 == table_.stages;
        case Pattern::kSequenceLength:
          return uneven_[s] != 0;
        case Pattern::kCommunication:
          return static_cast<bool>(communication_[s]);
        case Pattern::kGc:
          return gc_steps_[s] != 0;
        default:
          return out_.steps[s].pattern == pattern;
      }
    });
    out_.causes.push_back({pattern, confidence, std::move(evidence)});
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

  std::string worker_text() const {
    const std::size_t worker = out_.slowest.front();
    std::string text;
    double largest_ratio = 0;
    for (const TraceOp type : {TraceOp::kForwardCompute, TraceOp::kBackwardCompute}) {
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
    const auto remedy = std::find_if(out_.remedies.begin(), out_.remedies.end(),
                                     [](const Remedy& r) { return r.name == "replace-worker"; });
    return text +
           fmt::format("; replacing it would save {:.0f} % of step time", 100 * remedy->saves);
  }

  std::string stage_text() const {
    const auto remedy = std::find_if(out_.remedies.begin(), out_.remedies.end(),
                                     [](const Remedy& r) { return r.name == "rebalance-stages"; });
    return fmt::format(
        "the last stage, {}, explains {:.0f} % of what is lost; with all stages alike a step would "
        "save {:.0f} % of its time",
        table_.stages - 1, 100 * *out_.stage.rem, 100 * remedy->saves);
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
  Causes& out_;
  std::vector<char> gc_steps_, uneven_;
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
  out.sequence_length = sequence_length_sign(scene.table, {});

  out.slowest.resize(by_worker.size());
  std::iota(out.slowest.begin(), out.slowest.end(), std::size_t{0});
  std::sort(out.slowest.begin(), out.slowest.end(), [&](std::size_t a, std::size_t b) {
    return by_worker[a] != by_worker[b] ? by_worker[a] > by_worker[b]
                                        : scene.table.ranks[a] < scene.table.ranks[b];
  });
  out.slowest.resize(std::min<std::size_t>(10, out.slowest.size()));
  out.by_worker = std::move(by_worker);

  const std::vector<Outlier> outliers = forward_outliers(scene.table);
  out.remedies = {replace_worker(scene, out.slowest.front()),
                  rebalance_stages(scene),
                  redistribute_sequences(scene),
                  planned_gc(scene, outliers),
                  faster_links(scene, Links::kBetweenStages),
                  faster_links(scene, Links::kReplicas)};
  if (traces_peers(scene.table)) {
    out.remedies.push_back(faster_links(scene, Links::kPeers));
  }
  std::stable_sort(out.remedies.begin(), out.remedies.end(),
                   [](const Remedy& a, const Remedy& b) { return a.saves > b.saves; });
  Finder finder(scene, blocking, per_step, outliers, out);
  finder.find_step_patterns();
  if (out.straggling) {
    finder.find_causes();
  }
  return out;
}

}  // namespace lockstep::whatif
