#include "analysis/goodput/goodput.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/flag_value.h"
#include "app/goodput/duration.h"
#include "app/report_flags.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_capture.h"
#include "base/stop_signal.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep goodput --step 5.2s --tokens 16777216 --gpus 16384 --gpu-mtbf 5.8y \
      --checkpoint 20s --restart 10min
  lockstep goodput --step 5.2s --gpus 1024 --server-mtbf 200d --checkpoint 2s \
      --checkpoint-drain 60s --restart 5min --spares 4 --repair 2d --for 8w --json
)";

struct Options {
  std::string step, from, gpu_mtbf, server_mtbf, checkpoint = "0s", drain = "0s", restart = "0s",
                                                 repair = "1d", horizon = "4w", interval;
  double tokens = 0, shape = 1;
  std::int64_t gpus = 0, gpus_per_server = 8, spares = -1, runs = 200;
  std::uint64_t seed = 1;
  int threads = 0;
  bool json = false;
};

/// The steps of `simulate --json`: all of --steps, or the one.
std::vector<double> steps_of(const std::string& path) {
  const FileText text(path);
  const Json json = parse_json(text.view(), path);
  const JsonView view(json, path);
  std::vector<double> steps;
  const auto add = [&](const JsonView& value, double others_s = 0) {
    steps.push_back(value.number() - others_s);
    if (!(steps.back() > 0)) {
      throw value.error("a step takes no time").expected("a number above 0");
    }
  };
  if (view.has("sample")) {
    view["sample"]["total_s"].each([&](const JsonView& value) { add(value); });
  } else {
    // Of several jobs the first one's, as in a sample.
    add(view["total_s"], view.has("other_jobs_s") ? view["other_jobs_s"].number() : 0);
  }
  if (steps.empty()) {
    throw Error("there is no step").at(path).field("sample.total_s");
  }
  return steps;
}

double above_zero(const char* flag, const std::string& text) {
  const double value = flag_value(flag, text, parse_duration_s);
  if (!(value > 0)) {
    throw Error("a time of 0").field(flag).expected("more than 0");
  }
  return value;
}

/// What the flags describe; the interval in steps follows.
struct Plan {
  LongRun run;
  CheckpointCosts costs;
  double mean_step_s = 0, server_mtbf_s = 0;
  std::int64_t servers = 0, best_interval = 1;
  bool chosen = false;  // the interval, by the user
};

double expected_goodput(const Plan& plan, std::int64_t interval) {
  const double work = static_cast<double>(interval) * plan.mean_step_s;
  return work / expected_segment_s(plan.costs, work);
}

/// Whether the process that is played is that of expected_goodput.
bool formula_applies(const LongRun& run) {
  return run.shape == 1 && run.drain_s == 0 && run.spares < 0;
}

/// ERRORS: the job is down all the time; or playing it would take half a minute of one core.
void check_playable(const Options& options, const LongRun& run) {
  constexpr double kMostSteps = 5e9, kMostFailures = 2e8;  // of 6 and of 70 ns
  const char* mtbf = options.gpu_mtbf.empty() ? "--server-mtbf" : "--gpu-mtbf";
  const double step = *std::ranges::min_element(run.steps_s);
  const auto runs = static_cast<double>(options.runs);
  if (step > run.horizon_s) {
    throw Error("the time is over before a step is")
        .field("--for")
        .expected(fmt::format("{} or more", duration_text(step)));
  }
  const double restarts = run.horizon_s / run.mtbf_s;
  if (restarts >= 1 && restarts * chance_of_progress(run) < 0.01) {
    throw Error(fmt::format("the job can make no progress: it fails every {} in the mean, but a "
                            "restart, a step and a checkpoint that is safe take {}",
                            duration_text(run.mtbf_s),
                            duration_text(run.restart_s + step + run.checkpoint_s + run.drain_s)))
        .field(mtbf)
        .hint(fmt::format("{} GPUs fail so many times as often as one", options.gpus));
  }
  if (run.horizon_s / step * runs > kMostSteps) {
    throw Error(fmt::format("more than {:g} steps would be played", kMostSteps))
        .field("--for")
        .hint("fewer --runs, or a shorter --for");
  }
  if (most_failures(run) * runs > kMostFailures) {
    throw Error(fmt::format("more than {:g} failures might be played, one every {}", kMostFailures,
                            duration_text(run.mtbf_s)))
        .field(mtbf)
        .hint("fewer --runs, or a shorter --for");
  }
}

Plan plan_of(const Options& options) {
  Plan plan;
  LongRun& run = plan.run;
  if (options.step.empty() == options.from.empty()) {
    throw Error(options.step.empty() ? "no step time is given" : "two step times are given")
        .expected("--step TIME, or --from a file of 'simulate --json'");
  }
  run.steps_s = options.from.empty() ? std::vector<double>{above_zero("--step", options.step)}
                                     : steps_of(options.from);
  for (const double step : run.steps_s) {
    plan.mean_step_s += step / static_cast<double>(run.steps_s.size());
  }
  plan.servers = (options.gpus + options.gpus_per_server - 1) / options.gpus_per_server;
  if (options.gpu_mtbf.empty() == options.server_mtbf.empty()) {
    throw Error("how often does hardware fail?")
        .expected("one of --gpu-mtbf and --server-mtbf")
        .hint("Llama 3's 419 interruptions of 16384 GPUs in 54 days are --gpu-mtbf 5.8y");
  }
  plan.server_mtbf_s = options.gpu_mtbf.empty() ? above_zero("--server-mtbf", options.server_mtbf)
                                                : above_zero("--gpu-mtbf", options.gpu_mtbf) /
                                                      static_cast<double>(options.gpus_per_server);
  run.mtbf_s = options.gpu_mtbf.empty()
                   ? plan.server_mtbf_s / static_cast<double>(plan.servers)
                   : above_zero("--gpu-mtbf", options.gpu_mtbf) / static_cast<double>(options.gpus);
  run.shape = options.shape;
  run.tokens_per_step = options.tokens;
  run.horizon_s = above_zero("--for", options.horizon);
  run.checkpoint_s = flag_value("--checkpoint", options.checkpoint, parse_duration_s);
  run.drain_s = flag_value("--checkpoint-drain", options.drain, parse_duration_s);
  run.restart_s = flag_value("--restart", options.restart, parse_duration_s);
  run.repair_s = flag_value("--repair", options.repair, parse_duration_s);
  run.spares = options.spares;
  check_playable(options, run);
  plan.costs = {run.mtbf_s, run.checkpoint_s, run.restart_s};
  // Whole steps: the better of the two beside the optimum; a drain sets the least.
  const double best = std::floor(exact_interval_s(plan.costs) / plan.mean_step_s);
  plan.best_interval = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(best, 1e15)));
  if (expected_goodput(plan, plan.best_interval + 1) > expected_goodput(plan, plan.best_interval)) {
    ++plan.best_interval;
  }
  const auto least = static_cast<std::int64_t>(std::ceil(run.drain_s / plan.mean_step_s));
  plan.best_interval = std::max(plan.best_interval, least);
  run.interval = plan.best_interval;
  if (!options.interval.empty()) {
    plan.chosen = true;
    const double wanted = above_zero("--interval", options.interval);
    run.interval =
        std::max<std::int64_t>(1, std::llround(std::min(wanted / plan.mean_step_s, 1e15)));
  }
  return plan;
}

/// For a share of 0.99 of the failures; none where they are not exponential, as the number of
/// servers away is Poisson's only then.
std::optional<std::int64_t> spares_for_99(const LongRun& run) {
  if (run.shape != 1) {
    return std::nullopt;
  }
  return spares_needed(run.mtbf_s, run.repair_s, 0.99);
}

Json document(const Options& options, const Plan& plan, const LongRunResult& result) {
  const auto estimate = [](const Estimate& value) {
    return Json{{"mean", value.mean},
                {"low", value.mean - value.half_width},
                {"high", value.mean + value.half_width}};
  };
  const auto step = [&](std::int64_t n) { return static_cast<double>(n) * plan.mean_step_s; };
  const auto spares = spares_for_99(plan.run);
  return {
      {"schema", "lockstep-goodput/1"},
      {"gpus", options.gpus},
      {"servers", plan.servers},
      {"mtbf_s", plan.run.mtbf_s},
      {"step_s", plan.mean_step_s},
      {"horizon_s", plan.run.horizon_s},
      {"runs", result.runs.size()},
      {"seed", options.seed},
      {"interval",
       {{"used_s", step(plan.run.interval)},
        {"used_steps", plan.run.interval},
        {"best_s", step(plan.best_interval)},
        {"best_steps", plan.best_interval},
        {"exact_s", exact_interval_s(plan.costs)},
        {"daly_s", daly_interval_s(plan.costs)},
        {"young_s", young_interval_s(plan.costs)}}},
      {"expected_goodput",
       formula_applies(plan.run) ? Json(expected_goodput(plan, plan.run.interval)) : Json()},
      {"goodput", estimate(result.goodput)},
      {"tokens_per_day", plan.run.tokens_per_step > 0 ? estimate(result.tokens_per_day) : Json()},
      {"steps", estimate(result.steps)},
      {"failures", estimate(result.failures)},
      {"time",
       {{"useful_s", result.mean.useful_s},
        {"lost_s", result.mean.lost_s},
        {"checkpoint_s", result.mean.checkpoint_s},
        {"restart_s", result.mean.restart_s},
        {"waiting_s", result.mean.waiting_s}}},
      {"spares_for_99_percent", spares ? Json(*spares) : Json()}};
}

std::string table(const Options& options, const Plan& plan, const LongRunResult& result) {
  const LongRun& run = plan.run;
  std::string text =
      fmt::format("goodput  {:.2f} % +- {:.2f} of {} on {} GPUs\n\n", 100 * result.goodput.mean,
                  100 * result.goodput.half_width, duration_text(run.horizon_s), options.gpus);
  const auto line = [&](const char* what, double seconds) {
    text += fmt::format("  {:<28} {:>12} {:>8.2f} %\n", what, duration_text(seconds),
                        100 * seconds / run.horizon_s);
  };
  line("steps that count", result.mean.useful_s);
  line("steps done again", result.mean.lost_s);
  line("checkpoints", result.mean.checkpoint_s);
  line("restarts", result.mean.restart_s);
  if (run.spares >= 0) {
    line("waiting for a spare", result.mean.waiting_s);
  }
  text += fmt::format("\n{:.1f} failures +- {:.1f}, one every {}\n", result.failures.mean,
                      result.failures.half_width, duration_text(run.mtbf_s));
  if (run.tokens_per_step > 0) {
    text += fmt::format("{:.4g} tokens a day +- {:.2g}\n", result.tokens_per_day.mean,
                        result.tokens_per_day.half_width);
  }
  const double interval_s = static_cast<double>(run.interval) * plan.mean_step_s;
  const bool applies = formula_applies(run);
  const double formula_s = exact_interval_s(plan.costs);
  const char* origin = plan.chosen ? ""
                       : interval_s > formula_s + plan.mean_step_s
                           ? ", the least that the drain allows"
                       : applies ? ", the optimum"
                                 : ", the formula's optimum";
  text +=
      fmt::format("checkpoint every {} ({} steps{}){}\n", duration_text(interval_s), run.interval,
                  origin, interval_s < run.drain_s ? ", but not before the last is safe" : "");
  text += fmt::format(
      "  optimum {}; Daly {}, Young {}; {}\n", duration_text(exact_interval_s(plan.costs)),
      duration_text(daly_interval_s(plan.costs)), duration_text(young_interval_s(plan.costs)),
      applies ? fmt::format("expected goodput {:.2f} %", 100 * expected_goodput(plan, run.interval))
              : "of exponential failures, no drain, always a spare");
  if (const auto spares = spares_for_99(run)) {
    text += fmt::format("{} spare {} enough for 99 % of the failures (repair {})\n", *spares,
                        *spares == 1 ? "server is" : "servers are", duration_text(run.repair_s));
  }
  return text;
}

ExitCode goodput(const Options& options) {
  const Plan plan = plan_of(options);
  const Interruptible interruptible;
  const LongRunResult result = play_many(plan.run, options.seed, options.runs, options.threads);
  const auto runs = static_cast<std::int64_t>(result.runs.size());
  if (runs < options.runs) {
    fmt::print(standard_error(), "lockstep: stopped: the first {} of {} runs{}\n", runs,
               options.runs, runs == 1 ? "; of one alone there is no interval" : "");
  }
  write_file("-", options.json ? with_command(to_text(document(options, plan, result)))
                               : for_terminal(table(options, plan, result)));
  return runs < options.runs ? ExitCode::kInterrupted : ExitCode::kDone;
}

CommandBody define(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  constexpr std::int64_t kMany = std::int64_t{1} << 24;
  app.add_option("--step", o.step, "time of a step");
  app.add_option("--from", o.from, "or of all steps of 'simulate --steps N --json' (a file)");
  app.add_option("--tokens", o.tokens, "tokens of a step")->check(CLI::Range(0.0, 1e18));
  app.add_option("--gpus", o.gpus, "GPUs of the job")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, kMany));
  app.add_option("--gpus-per-server", o.gpus_per_server, "that fail and are replaced together")
      ->check(CLI::Range(std::int64_t{1}, kMany))
      ->capture_default_str();
  app.add_option("--gpu-mtbf", o.gpu_mtbf, "mean time between failures of a GPU and its share");
  app.add_option("--server-mtbf", o.server_mtbf, "or of a server");
  app.add_option("--weibull", o.shape, "shape of the time between failures; 1: exponential")
      ->check(CLI::Range(0.1, 1e9))
      ->capture_default_str();
  app.add_option("--checkpoint", o.checkpoint, "time that a checkpoint stops the work")
      ->capture_default_str();
  app.add_option("--checkpoint-drain", o.drain, "time after that until it is safe; work goes on")
      ->capture_default_str();
  app.add_option("--interval", o.interval, "time between checkpoints (default: the optimum)");
  app.add_option("--restart", o.restart, "from a failure to the first step")->capture_default_str();
  app.add_option("--spares", o.spares, "spare servers; -1: always one")
      ->check(CLI::Range(std::int64_t{-1}, kMany))
      ->capture_default_str();
  app.add_option("--repair", o.repair, "until a failed server is a spare again")
      ->capture_default_str();
  app.add_option("--for", o.horizon, "how long it trains")->capture_default_str();
  app.add_option("--runs", o.runs, "how often it is played")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1'000'000}))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of all draws")->capture_default_str();
  app.add_option("--threads", o.threads, "(default: one a core); the result does not depend on it")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--json", o.json, "machine-readable result (docs/formats/goodput-json.md)");
  return [options] { return goodput(*options); };
}

}  // namespace

extern const Command kGoodputCommand;
const Command kGoodputCommand = {
    "goodput", "step times + failures, checkpoints, restarts -> tokens a day over weeks", kExamples,
    define};

}  // namespace lockstep
