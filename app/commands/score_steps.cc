#include "app/step_score/score_steps.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/flag_value.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/json.h"
#include "base/output_capture.h"
#include "base/progress.h"
#include "base/stop_signal.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep score-steps ../shared/reference/physical
  lockstep score-steps ../shared/reference/physical --source vTrain --rows
  lockstep score-steps ../shared/reference/physical --half even --row-limit 2min
)";

struct Options {
  std::string folder, source, half = "both", launch, row_limit;
  std::int64_t every = 1, max_gpus = std::int64_t{1} << 24, row = 0;
  bool rows = false, json = false, overlap = false;
};

/// What is printed, whichever way.
struct Scored {
  std::vector<ScoredStep> steps;
  std::map<std::string, std::int64_t> skipped;
  bool rows = false;    // every step, too
  bool halves = false;  // odd rows and even ones apart, too
};

Json document(std::span<const StepScore> scores) {
  Json json = Json::array();
  for (const StepScore& score : scores) {
    json.push_back({{"source", score.source},
                    {"steps", score.steps},
                    {"mean", score.mean},
                    {"median", score.median},
                    {"p90", score.p90},
                    {"bias", score.bias}});
  }
  return json;
}

Json document(const Scored& scored) {
  Json json{{"schema", "lockstep-score-steps/1"}};
  json["sources"] = document(scores_of(scored.steps));
  if (scored.halves) {
    json["odd_rows"] = document(scores_of(scored.steps, RowHalf::kOdd));
    json["even_rows"] = document(scores_of(scored.steps, RowHalf::kEven));
  }
  json["skipped"] = scored.skipped;
  if (scored.rows) {
    json["rows"] = Json::array();
    for (const ScoredStep& step : scored.steps) {
      const Job& job = step.step->job;
      Json row{{"source", step.step->source},
               {"file", step.step->file},
               {"row", step.step->row},
               {"gpus", job.gpus},
               {"tp", job.tp},
               {"pp", job.pp},
               {"dp", job.dp()},
               {"micro_batch", job.micro_batch},
               {"microbatches", job.microbatches()},
               {"measured_s", step.step->measured_s}};
      if (step.failure.empty()) {
        row["predicted_s"] = step.predicted_s;
      } else {
        row["failure"] = step.failure;
      }
      json["rows"].push_back(std::move(row));
    }
  }
  return json;
}

std::string table(std::string_view heading, std::span<const StepScore> scores) {
  std::string text = fmt::format("{:<24} {:>6} {:>9} {:>9} {:>9} {:>9}\n", heading, "steps", "mean",
                                 "median", "p90", "bias");
  for (const StepScore& score : scores) {
    text += fmt::format("{:<24} {:>6} {:>7.1f} % {:>7.1f} % {:>7.1f} % {:>+7.1f} %\n", score.source,
                        score.steps, 100 * score.mean, 100 * score.median, 100 * score.p90,
                        100 * score.bias);
  }
  return text;
}

std::string table(const Scored& scored) {
  std::string text;
  if (scored.rows) {
    for (const ScoredStep& step : scored.steps) {
      const Job& job = step.step->job;
      text += fmt::format(
          "{:<24} row {:>4} {:<10} gpus {:>5} tp {} cp {} pp {:>2} dp {:>4} mb {:>2} x {:>4} ",
          step.step->source, step.step->row, job.gpu_type, job.gpus, job.tp, job.cp, job.pp,
          job.dp(), job.micro_batch, job.microbatches());
      text += step.failure.empty()
                  ? fmt::format("{:10.4f} s measured {:10.4f} predicted {:+7.1f} %\n",
                                step.step->measured_s, step.predicted_s, 100 * (step.ratio() - 1))
                  : step.failure + "\n";
    }
    text += '\n';
  }
  text += table("source", scores_of(scored.steps));
  if (scored.halves) {
    text += '\n' + table("odd rows", scores_of(scored.steps, RowHalf::kOdd)) + '\n' +
            table("even rows", scores_of(scored.steps, RowHalf::kEven)) + '\n';
  }
  for (const auto& [why, count] : scored.skipped) {
    text += fmt::format("passed over, {} {}: {}\n", count, count == 1 ? "row" : "rows", why);
  }
  return text;
}

ExitCode score_steps(const Options& options) {
  PredictionOptions prediction;
  if (!options.launch.empty()) {
    prediction.launch = flag_value("--host-launch", options.launch, parse_time);
  }
  if (!options.row_limit.empty()) {
    prediction.limit = flag_value("--row-limit", options.row_limit, parse_time);
  }
  prediction.recipe_overlap = options.overlap;
  const RowHalf half = options.half == "odd"    ? RowHalf::kOdd
                       : options.half == "even" ? RowHalf::kEven
                                                : RowHalf::kBoth;
  PublishedSteps published = read_published_steps(options.folder);
  std::vector<const PublishedStep*> chosen;
  std::map<std::string, std::int64_t> nth;
  for (const PublishedStep& step : published.steps) {
    if (step.source.find(options.source) != std::string::npos &&
        step.job.gpus <= options.max_gpus && is_in(half, step) &&
        (options.row == 0 || step.row == options.row) && nth[step.source]++ % options.every == 0) {
      chosen.push_back(&step);
    }
  }
  if (chosen.empty()) {
    throw Error("no step is left to score").at(options.folder);
  }
  Progress progress("steps", static_cast<std::int64_t>(chosen.size()));
  Scored scored{{}, std::move(published.skipped), options.rows, half == RowHalf::kBoth};
  const Interruptible interruptible;
  for (const PublishedStep* step : chosen) {
    progress.update(std::ssize(scored.steps));
    try {
      throw_if_stopped();
      scored.steps.push_back(predict(*step, prediction));
    } catch (const Interrupted&) {
      if (scored.steps.empty()) {
        throw;
      }
      break;
    }
    if (const std::string& failure = scored.steps.back().failure; !failure.empty()) {
      ++scored.skipped[fmt::format("{}: {}", step->source, failure)];
    }
  }
  write_file("-", options.json ? to_text(document(scored)) : for_terminal(table(scored)));
  if (scored.steps.size() < chosen.size()) {
    fmt::print(standard_error(), "lockstep: stopped: the first {} of {} steps\n",
               scored.steps.size(), chosen.size());
    return ExitCode::kInterrupted;
  }
  return ExitCode::kDone;
}

CommandBody define(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("DIR", options->folder, "folder of tables of published step times")->required();
  app.add_option("--source", options->source, "only sources whose name has this in it");
  app.add_option("--half", options->half,
                 "rows of each table by their number: calibration uses odd ones, scores even ones")
      ->check(CLI::IsMember({"odd", "even", "both"}))
      ->capture_default_str();
  app.add_option("--every", options->every, "one in so many rows of each source")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->capture_default_str();
  app.add_option("--row", options->row, "only this row of each table, from 1")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  app.add_option(
      "--row-limit", options->row_limit,
      "CPU time for each row, such as 60s; one that takes longer is passed over, and told");
  app.add_option("--max-gpus", options->max_gpus, "only steps of at most so many GPUs")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  app.add_option("--host-launch", options->launch,
                 "host time for each operator where launches are eager, in place of the built-in");
  app.add_flag(
      "--tp-comm-overlap", options->overlap,
      "tensor-parallel transfers run beside their product where the recipe says so, though "
      "the GPUs' rates were fitted without");
  app.add_flag("--rows", options->rows, "every step, not the scores alone");
  app.add_flag("--json", options->json, "machine-readable result");
  return [options] { return score_steps(*options); };
}

}  // namespace

extern const Command kScoreStepsCommand;
const Command kScoreStepsCommand = {
    "score-steps", "published step times -> how far our predictions are off, by source", kExamples,
    define};

}  // namespace lockstep
