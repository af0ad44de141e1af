#include "analysis/whatif/step_patterns.h"

#include <algorithm>
#include <utility>

#include "analysis/whatif/numbers.h"
#include "base/parallel.h"

namespace lockstep::whatif {
namespace {

constexpr double kOneOffSlower = 1.25;  // than the median step

std::size_t largest(const std::vector<double>& v) {
  return static_cast<std::size_t>(std::max_element(v.begin(), v.end()) - v.begin());
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

class Finder {
 public:
  explicit Finder(const Findings& found) : found_(found), table_(found.scene.table) {}

  StepPatterns find() {
    out_.uneven.assign(table_.steps.size(), 0);
    for_each_in_parallel(out_.uneven.size(), threads_for(table_.size()), [&](std::size_t s) {
      out_.uneven[s] = shows_sequence_length(sequences_of(table_, {s}, found_.pauses)) ? 1 : 0;
    });
    std::vector<double> slowdowns;
    std::vector<std::size_t> workers;
    for (std::size_t s = 0; s < table_.steps.size(); ++s) {
      slowdowns.push_back(found_.scene.model.nodelay.span[s] /
                          found_.scene.model.ideal.optimizer[s]);
      out_.communication.push_back(communication_leads(found_.blocking.by_optype.labels,
                                                       found_.blocking.by_optype.per_step[s]));
      workers.push_back(slowest_worker(s, found_.compute));
    }
    std::vector<double> sorted = slowdowns;
    const double middle = median(std::span<double>(sorted));
    usual_worker_ =
        found_.width() > 1 ? with_usual_worker(found_.scene, workers) : found_.scene.model.nodelay;
    for (std::size_t s = 0; s < slowdowns.size(); ++s) {
      StepPattern step{.step = table_.steps[s], .slowdown = slowdowns[s]};
      step.stage = static_cast<std::int32_t>(largest(found_.blocking.by_stage.per_step[s]));
      step.pattern = pattern_of(s, slowdowns[s], middle);
      step.worker = step.pattern == Pattern::kGc ? slowest_worker(s, found_.traced) : workers[s];
      out_.steps.push_back(step);
    }
    return std::move(out_);
  }

 private:
  /// Of a step: by what its computation takes more than its peers', or by S_w without peers.
  std::size_t slowest_worker(std::size_t s, const ComputeExcess& compute) const {
    if (found_.width() == 1) {
      return largest(found_.per_step[s]);
    }
    const auto first = compute.late_s.begin() + static_cast<std::ptrdiff_t>(s * compute.workers);
    const auto most = std::max_element(first, first + static_cast<std::ptrdiff_t>(compute.workers));
    return *most > 0 ? static_cast<std::size_t>(most - first) : largest(found_.per_step[s]);
  }

  /// Of several, and of one beside pauses, neither of which explains half alone.
  bool has_slow_beside_others(std::size_t s) const {
    const SlowWorkers& slow = found_.slow_workers;
    return (slow.together || (found_.pauses.moving && slow.worth_naming())) &&
           std::ranges::any_of(slow.workers,
                               [&](std::size_t worker) { return found_.is_slow_in(worker, s); });
  }

  /// One stage's transfers make it stand out, too, so that where they waste more than computation
  /// its passes must be longer than other stages'.
  bool stage_explains(std::size_t s, double slowdown) const {
    const std::vector<double>& ratios = found_.blocking.by_stage.per_step[s];
    const auto& heavy = found_.heavy.stages;
    return table_.stages > 1 && stands_out(ratios, slowdown) &&
           (!out_.communication[s] ||
            std::ranges::count(heavy, static_cast<std::int32_t>(largest(ratios))) > 0);
  }

  Pattern pattern_of(std::size_t s, double slowdown, double middle) const {
    if (slowdown < kStraggling) {
      return Pattern::kNone;
    }
    if (found_.pauses_explain(s)) {
      return Pattern::kGc;
    }
    if (found_.width() > 1 ? found_.explains(usual_worker_, s) || has_slow_beside_others(s)
                           : stands_out(found_.per_step[s], slowdown)) {
      return Pattern::kWorker;
    }
    if (found_.explains(found_.usual_transfers, s)) {
      return Pattern::kCommunication;
    }
    if (out_.uneven[s] != 0) {
      return Pattern::kSequenceLength;
    }
    if (stage_explains(s, slowdown)) {
      return Pattern::kStage;
    }
    if (out_.communication[s]) {
      return Pattern::kCommunication;
    }
    if (slowdown < kOneOffSlower * middle) {
      return Pattern::kMixed;
    }
    const Pauses& pauses = found_.pauses;
    const double without =
        (pauses.without.span[s] + pauses.shared_s[s]) / found_.scene.model.ideal.optimizer[s];
    return pauses.moving && without < kOneOffSlower * middle ? Pattern::kGc : Pattern::kOneOff;
  }

  const Findings& found_;
  const OpTable& table_;
  StepTimes usual_worker_;  // T without the slowest of each step
  StepPatterns out_;
};

}  // namespace

bool Findings::is_slow_in(std::size_t worker, std::size_t step) const {
  const std::size_t at = step * compute.workers + worker;
  return compute.late_s[at] >= compute.usual_s[at] * compute.share(compute.late_s, worker) / 2;
}

bool Findings::explains(const StepTimes& without, std::size_t step, double stays) const {
  const double now = scene.model.nodelay.span[step];
  return now - without.span[step] - stays >= kExplains * (now - scene.model.ideal.optimizer[step]);
}

bool Findings::pauses_explain(std::size_t step) const {
  return pauses.moving && explains(pauses.without, step, pauses.shared_s[step]);
}

StepPatterns find_step_patterns(const Findings& found) { return Finder(found).find(); }

SequenceLengthSign sequences_of(const OpTable& table, const std::vector<std::size_t>& steps,
                                const Pauses& pauses) {
  const SequenceLengthSign sign = sequence_length_sign(table, steps);
  return shows_sequence_length(sign) || !pauses.moving
             ? sign
             : sequence_length_sign(table, steps, pauses.outliers);
}

bool is_comm_label(const std::string& label) {
  return !is_compute_label(label) && label != to_text(TraceOp::kGc) &&
         label != to_text(TraceOp::kOptimizer);
}

bool communication_leads(const std::vector<std::string>& labels,
                         const std::vector<double>& ratios) {
  return most(labels, ratios, is_comm_label) > most(labels, ratios, is_compute_label);
}

}  // namespace lockstep::whatif
