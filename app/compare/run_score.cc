#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analysis/compare/score.h"
#include "app/compare/compare_options.h"
#include "app/step_score/score_steps.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/json.h"
#include "base/progress.h"

namespace lockstep {
namespace {

/// Published training steps of a folder on at most so many GPUs, by source.
std::vector<StepScore> step_scores(const std::string& folder, std::int64_t most_gpus) {
  const PublishedSteps published = read_published_steps(folder);
  Progress progress("steps", static_cast<std::int64_t>(published.steps.size()));
  std::vector<ScoredStep> scored;
  std::int64_t done = 0;
  for (const PublishedStep& step : published.steps) {
    progress.update(done++);
    if (step.job.gpus <= most_gpus) {
      scored.push_back(predict(step, {}));
    }
  }
  return scores_of(scored);
}

std::string steps_markdown(const std::vector<StepScore>& scores, std::int64_t most_gpus) {
  std::string text = fmt::format(
      "\n## Training steps\n\n"
      "Published times of steps on at most {} GPUs (`lockstep score-steps` has every one; "
      "docs/models.md "
      "says what was calibrated).\n\n"
      "| source | steps | median size | p90 | bias |\n|---|---|---|---|---|\n",
      most_gpus);
  for (const StepScore& score : scores) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", score.source, score.steps,
                        compare::percent(score.median), compare::percent(score.p90),
                        compare::percent(score.bias, true));
  }
  return text;
}

std::string with_steps(const std::string& text, const std::vector<StepScore>& scores) {
  Json json = parse_json(text, "score");
  json["steps"] = Json::array();
  for (const StepScore& score : scores) {
    json["steps"].push_back({{"source", score.source},
                             {"steps", score.steps},
                             {"median_error", score.median},
                             {"p90_error", score.p90},
                             {"bias", score.bias}});
  }
  return to_text(json);
}

}  // namespace

CommandBody define_score(CLI::App& app) {
  struct Flags {
    ClusterFlags cluster;
    std::string folder, output = "-";
    std::int64_t step_gpus = 0;
    bool json = false, halves = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("folder", flags->folder,
                 "folder of measurements: index.csv and tables.csv, or logs")
      ->required();
  app.add_option("-o,--output", flags->output, "file to write; - is standard output")
      ->capture_default_str();
  app.add_option("--step-gpus", flags->step_gpus,
                 "also the folder's published training steps on at most so many GPUs (score-steps)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  app.add_flag("--halves", flags->halves,
               "also what calibrate makes of each half of a cluster's tables, judged on the other");
  app.add_flag("--json", flags->json, "one JSON document in place of Markdown");
  define_cluster_flags(app, flags->cluster);
  return [flags] {
    const compare::Score score =
        compare::score_folder(flags->folder, wishes_of(flags->cluster), flags->halves);
    std::string text = flags->json ? compare::score_json(score) : compare::score_markdown(score);
    if (flags->step_gpus > 0) {
      const std::vector<StepScore> steps = step_scores(flags->folder, flags->step_gpus);
      text = flags->json ? with_steps(text, steps) : text + steps_markdown(steps, flags->step_gpus);
    }
    const bool table = !flags->json && flags->output == "-";
    write_file(flags->output, table ? for_terminal(text) : text);
    return ExitCode::kDone;
  };
}

}  // namespace lockstep
