#include "app/compare/training_logs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "analysis/compare/errors.h"
#include "app/generate_exact.h"
#include "app/simulate/run_flow.h"
#include "app/simulate/simulate_options.h"
#include "app/simulate/step_document.h"
#include "app/simulate/step_input.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/output_capture.h"
#include "base/text.h"
#include "generator/exact/model_flops.h"

namespace lockstep {
namespace {

constexpr std::size_t kFewest = 3;  // iterations of which the first is left out

/// The iterations of a log that count.
struct Iterations {
  std::vector<double> times;  ///< ascending
  std::size_t left_out = 0;
  std::string batch;  ///< "512"; empty: the log does not tell
  double median_s() const { return compare::median(times); }
  /// By nearest rank.
  double percentile(double share) const {
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(times.size())));
    return times[std::max<std::size_t>(rank, 1) - 1];
  }
};

/// Times by their iteration, without the first (start-up) where there are enough.
std::vector<double> without_start(std::map<std::int64_t, double> by_iteration) {
  if (by_iteration.size() >= kFewest) {
    by_iteration.erase(by_iteration.begin());
  }
  std::vector<double> times;
  times.reserve(by_iteration.size());
  for (const auto& [iteration, time] : by_iteration) {
    times.push_back(time);
  }
  return times;
}

Iterations iterations_of(const PhysicalLog& log) {
  const std::int32_t last = log.steps.back().run;
  std::map<std::int64_t, double> times;  // several ranks may tell of one iteration
  for (const StepRow& step : log.steps) {
    if (step.run == last) {
      times.emplace(step.step, step.time_s);
    }
  }
  Iterations result;
  result.times = without_start(std::move(times));
  result.left_out = log.steps.size() - result.times.size();
  std::ranges::sort(result.times);
  const std::string& run = log.groups[static_cast<std::size_t>(last)];
  constexpr std::string_view kBatch = "global batch ";
  const std::size_t batch = run.find(kBatch);
  result.batch = batch == std::string::npos ? "" : run.substr(batch + kBatch.size());
  return result;
}

/// A timer of Megatron-LM's that has a counterpart in a predicted step.
struct Part {
  const char* name = "";
  double measured_s = 0, predicted_s = 0;
};

/// The median of a timer over the iterations that count.
double timed(const PhysicalLog& log, std::string_view name) {
  std::map<std::int64_t, double> times;
  for (const StepPart& part : log.parts) {
    if (part.run == log.steps.back().run &&
        log.names[static_cast<std::size_t>(part.name)] == name) {
      times.emplace(part.step, part.time_s);
    }
  }
  return times.empty() ? 0 : compare::median(without_start(std::move(times)));
}

/// When rank 0 is through with its passes and the reduction of their gradients, so that the
/// optimizer begins; nothing where its operations are not kept.
std::optional<Time> passes_end(const StepDetail& detail) {
  std::optional<Time> first;
  for (const StepDetail::Event& event : detail.events) {
    const StepDetail::Track& track = detail.tracks[static_cast<std::size_t>(event.track)];
    const OpType type = detail.kinds[static_cast<std::size_t>(event.kind)].type;
    if (detail.classes[static_cast<std::size_t>(track.rank_class)].first == 0 &&
        (type == OpType::kClip || type == OpType::kOptimizer)) {
      first = std::min(first.value_or(event.begin), event.begin);
    }
  }
  return first;
}

/// What training.py times: the passes with the reduction of gradients, and the optimizer with the
/// gathering of parameters. Nothing where the log has no timers.
std::vector<Part> parts_of(const PhysicalLog& log, const StepDetail& detail, Time total) {
  std::vector<Part> parts;
  if (const std::optional<Time> end = passes_end(detail)) {
    for (const Part& part : {Part{"forward-backward", 0, end->seconds()},
                             Part{"optimizer", 0, (total - *end).seconds()}}) {
      if (const double measured = timed(log, part.name); measured > 0) {
        parts.push_back({part.name, measured, part.predicted_s});
      }
    }
  }
  return parts;
}

/// A log, and the step that is predicted of its job.
struct Compared {
  const PhysicalLog* log = nullptr;
  Iterations iterations;
  ExactJob job;
  StepResult step;
  std::vector<Part> parts;
  std::optional<double> most_held;  ///< bytes of the rank that held most, where the log tells

  double measured_s() const { return iterations.median_s(); }
  double predicted_s() const { return step.total.seconds(); }
  double error() const { return predicted_s() / measured_s() - 1; }
  double tokens() const {
    return static_cast<double>(job.job.global_batch) * static_cast<double>(job.job.seq);
  }
  double flops_per_gpu(double step_s) const {
    return model_flops(job.job) / step_s / static_cast<double>(job.job.gpus);
  }
};

Compared compared(const PhysicalLog& log, const TrainingComparison& comparison) {
  SimulateOptions options;
  const Iterations iterations = iterations_of(log);
  options.job = {"--from-megatron-args", log.file};
  if (to_int(iterations.batch).value_or(0) > 0) {  // of what was measured, which may be a ramp
    options.job.insert(options.job.end(), {"--gbs", iterations.batch});
  }
  options.topology = comparison.topology;
  options.preset = comparison.preset;
  StepInput input = read_step_input(options);
  StepDetail detail;
  options.detail = log.parts.empty() ? nullptr : &detail;
  Compared result{&log, iterations, std::move(*input.job), {}, {}, {}};
  result.step = run_flow(input.workload, *input.topology, options, nullptr);
  label_step(options, result.step);
  result.parts = parts_of(log, detail, result.step.total);
  std::vector<std::string>& warnings = result.step.warnings;
  warnings.insert(warnings.begin(), input.warnings.begin(), input.warnings.end());
  if (const auto held = log.facts.find("max_allocated_MiB"); held != log.facts.end()) {
    result.most_held = to_double(held->second).value_or(0) * 1024 * 1024;
  }
  return result;
}

std::string line(const char* what, const std::string& measured, const std::string& predicted,
                 double error) {
  return fmt::format("{:<26}{:>12} {:>12} {:>9}\n", what, measured, predicted,
                     compare::percent(error, true));
}

std::string text_of(const Compared& c) {
  const Job& job = c.job.job;
  std::string text = fmt::format(
      "{} beside a step on {}, flow engine\n{} GPUs: tp {}, {}pp {}, dp {}, ep {}, {} "
      "micro-batch{}\n\n",
      c.log->file, c.step.topology, job.gpus, job.tp,
      job.cp > 1 ? fmt::format("cp {}, ", job.cp) : "", job.pp, job.dp(), job.ep,
      job.microbatches(), job.microbatches() == 1 ? "" : "es");
  text += fmt::format("{:<26}{:>12} {:>12} {:>9}\n", "", "measured", "predicted", "error");
  const double measured = c.measured_s(), predicted = c.predicted_s();
  const auto time = [](double seconds) { return to_text(Time::seconds(seconds)); };
  text += line("step", time(measured), time(predicted), c.error());
  for (const Part& part : c.parts) {
    text += line(fmt::format("  {}", part.name).c_str(), time(part.measured_s),
                 time(part.predicted_s), part.predicted_s / part.measured_s - 1);
  }
  const auto rate = [&](double seconds) { return fmt::format("{:.0f}", c.tokens() / seconds); };
  text += line("tokens/s", rate(measured), rate(predicted), measured / predicted - 1);
  const auto flops = [&](double seconds) {
    return fmt::format("{:.1f}", c.flops_per_gpu(seconds) / 1e12);
  };
  text += line("TFLOP/s a GPU", flops(measured), flops(predicted), measured / predicted - 1);
  if (c.most_held && *c.most_held > 0) {
    const auto ours = static_cast<double>(peak_memory(c.job.memory).count());
    const auto bytes = [](double count) {
      return to_text(Bytes(static_cast<std::int64_t>(count)));
    };
    text += line("memory of the fullest rank", bytes(*c.most_held), bytes(ours),
                 ours / *c.most_held - 1);
  }
  const Iterations& all = c.iterations;
  text += fmt::format(
      "\nmeasured: {} line{} of iterations, {} to {} between the 10th and the 90th "
      "percentile{}\n",
      all.times.size(), all.times.size() == 1 ? "" : "s", time(all.percentile(0.1)),
      time(all.percentile(0.9)),
      all.left_out > 0
          ? fmt::format("; {} left out (start-up, other starts and batches)", all.left_out)
          : "");
  const auto share = [&](Time part) {
    return fmt::format("{:.1f} %", 100 * part.seconds() / predicted);
  };
  text += fmt::format("predicted: compute {}, communication not hidden {}{}\n",
                      share(c.step.compute), share(c.step.exposed),
                      c.step.bubble > Time() ? ", pipeline bubble " + share(c.step.bubble) : "");
  return text;
}

Json json_of(const Compared& c) {
  const Job& job = c.job.job;
  const double measured = c.measured_s(), predicted = c.predicted_s();
  Json json = {
      {"file", c.log->file},
      {"topology", c.step.topology},
      {"gpus", job.gpus},
      {"parallel",
       {{"tp", job.tp}, {"cp", job.cp}, {"ep", job.ep}, {"pp", job.pp}, {"dp", job.dp()}}},
      {"microbatches", job.microbatches()},
      {"iterations", c.iterations.times.size()},
      {"left_out", c.iterations.left_out},
      {"measured",
       {{"step_s", measured},
        {"p10_s", c.iterations.percentile(0.1)},
        {"p90_s", c.iterations.percentile(0.9)},
        {"tokens_per_s", c.tokens() / measured},
        {"flops_per_gpu", c.flops_per_gpu(measured)},
        {"memory_bytes", c.most_held ? Json(static_cast<std::int64_t>(*c.most_held)) : Json()}}},
      {"predicted",
       {{"step_s", predicted},
        {"compute_s", c.step.compute.seconds()},
        {"exposed_s", c.step.exposed.seconds()},
        {"bubble_s", c.step.bubble.seconds()},
        {"tokens_per_s", c.tokens() / predicted},
        {"flops_per_gpu", c.flops_per_gpu(predicted)},
        {"memory_bytes", peak_memory(c.job.memory).count()}}},
      {"error", c.error()}};
  json["parts"] = Json::array();
  for (const Part& part : c.parts) {
    json["parts"].push_back({{"name", part.name},
                             {"measured_s", part.measured_s},
                             {"predicted_s", part.predicted_s},
                             {"error", part.predicted_s / part.measured_s - 1}});
  }
  json["warnings"] = c.step.warnings;
  return json;
}

}  // namespace

bool are_training_logs(const std::vector<PhysicalLog>& logs) {
  const auto of_training = [](const PhysicalLog& log) { return log.format == "megatron"; };
  const auto first = std::ranges::find_if(logs, of_training);
  if (first == logs.end()) {
    return false;
  }
  if (const auto other = std::ranges::find_if_not(logs, of_training); other != logs.end()) {
    throw Error("this is no log of a training, and others are")
        .at(other->file)
        .expected("logs of one kind, such as " + first->file)
        .hint("two runs are laid beside each other by --against");
  }
  return true;
}

ExitCode compare_training_logs(const std::vector<PhysicalLog>& logs,
                               const TrainingComparison& comparison) {
  if (comparison.topology.empty()) {
    throw Error("a training's step is predicted on a topology")
        .at(logs.front().file)
        .field("--topology")
        .expected("a file, or a template such as Spectrum-X:g=128")
        .hint("two runs are laid beside each other by --against");
  }
  std::vector<Compared> all;
  for (const PhysicalLog& log : logs) {
    all.push_back(compared(log, comparison));
    for (const std::string& warning : all.back().step.warnings) {
      fmt::print(standard_error(), "lockstep: warning: {}\n", warning);
    }
  }
  double worst = 0;
  std::string text;
  Json json = {{"schema", "lockstep-compare-training/1"}};
  for (const Compared& each : all) {
    worst = std::max(worst, std::abs(each.error()));
    text += (text.empty() ? "" : "\n") + text_of(each);
    json["logs"].push_back(json_of(each));
  }
  const std::string document = with_command(to_text(json));
  write_reports(comparison.report, "compare", document);
  write_file("-", comparison.json ? document : for_terminal(text));
  if (comparison.limit && worst > *comparison.limit) {
    fmt::print(standard_error(), "lockstep: the error of a step is {}, over {}\n",
               compare::percent(worst), compare::percent(*comparison.limit));
    return ExitCode::kCheckFailed;
  }
  return ExitCode::kDone;
}

}  // namespace lockstep
