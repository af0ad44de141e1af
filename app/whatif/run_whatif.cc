#include "app/whatif/run_whatif.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "analysis/whatif/causes.h"
#include "analysis/whatif/edit.h"
#include "analysis/whatif/numbers.h"
#include "analysis/whatif/timelines.h"
#include "analysis/whatif/whatif.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/record_gzip.h"
#include "base/text.h"
#include "report/heat_map.h"
#include "trace/job_meta.h"
#include "trace/read_trace.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using namespace whatif;

StepRange parse_range(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto first = to_int(std::string_view(text).substr(0, dash));
  const auto last =
      dash == std::string::npos ? first : to_int(std::string_view(text).substr(dash + 1));
  if (!first || !last || *first < 0 || *first > *last) {
    throw Error(fmt::format("'{}' is no step and no range of steps", printable(text)))
        .field("--steps")
        .expected("numbers such as 403, or ranges such as 16-40");
  }
  return {*first, *last};
}

void make_folder(const std::string& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) {
    throw Error(fmt::format("cannot make the folder: {}", problem.message())).at(path);
  }
}

void print_warnings(const Warnings& warnings) {
  for (const Warnings::Entry& entry : warnings.entries()) {
    if (entry.count == 1) {
      fmt::print(stderr, "lockstep: warning: {}\n", entry.text);
    } else {
      fmt::print(stderr, "lockstep: warning: {} ({} times)\n", entry.text, entry.count);
    }
  }
}

/// The two shares, as the original tools take them: with steps that start at 0.
struct Shares {
  Contribution stage, workers;
};

Shares shares_of(const Scene& scene, const Result& result) {
  Shares shares{contribution(scene, last_stage(scene.table)), no_contribution(scene)};
  if (result.blocking) {
    const auto by_worker =
        approximate_by_worker(result.blocking->by_dp_rank, result.blocking->by_stage);
    shares.workers = contribution(scene, slowest_workers(scene.table, by_worker));
  }
  return shares;
}

Shares shares_from_zero(const Scene& scene, const Result& result) {
  const auto& starts = scene.model.step_start_s;
  if (std::all_of(starts.begin(), starts.end(), [](double start) { return start == 0; })) {
    return shares_of(scene, result);
  }
  const Model model = make_model(scene.table, scene.graph, scene.simulator, scene.traced,
                                 std::vector<double>(starts.size(), 0.0));
  return shares_of({scene.table, scene.graph, scene.simulator, scene.traced, model}, result);
}

EditRule parse_rule(const std::string& text) {
  try {
    return parse_edit(text);
  } catch (Error& error) {
    error.locate("--set");
    throw;
  }
}

/// Ratios need times.
void check_times(const Scene& scene, const std::string& file) {
  for (std::size_t s = 0; s < scene.table.steps.size(); ++s) {
    if (!(scene.model.ideal.optimizer[s] > 0) || !(scene.model.nodelay.optimizer[s] > 0)) {
      throw Error(fmt::format("step {} takes no time", scene.table.steps[s]))
          .at(file)
          .expected("operations that last");
    }
  }
}

/// What a person wants to know first.
std::string overview(const Result& result, const Causes& causes, const OpTable& table,
                     const std::string& output) {
  std::string text = fmt::format(
      "{}: S = {:.3f}; {:.1f} % of the time is lost to stragglers; {} steps of {:.4g} s, ideally "
      "{:.4g} s\n",
      result.meta.trial_name, causes.slowdown, 100 * causes.waste, result.steps.size(),
      causes.workers.tori, causes.workers.tideal);
  for (const Cause& cause : causes.causes) {
    text += fmt::format("cause: {} ({:.0f} % of the slow steps show it)\n  {}\n",
                        to_text(cause.pattern), 100 * cause.confidence, cause.evidence);
  }
  text +=
      fmt::format("slowest worker: rank {}, alone {:.3f}\n", table.ranks[causes.slowest.front()],
                  causes.by_worker[causes.slowest.front()]);
  for (const Remedy& remedy : causes.remedies) {
    if (remedy.saves >= 0.001) {
      text += fmt::format("remedy: {}: saves {:.1f} %\n", remedy.description, 100 * remedy.saves);
    }
  }
  return text +
         fmt::format("written: {}\n",
                     (fs::path(output) / ("result-" + result.meta.trial_name + ".json")).string() +
                         " and others beside it");
}

std::string python_float(double value) {
  std::string text;
  append_python_float(text, value);
  return text;
}

std::string edited(const Scene& scene, const std::vector<EditRule>& rules) {
  if (rules.empty()) {
    return "";
  }
  std::vector<std::int64_t> matched;
  const double then = pairwise_mean(simulate_edits(scene, rules, &matched).span);
  std::string text;
  for (std::size_t r = 0; r < rules.size(); ++r) {
    text += fmt::format("edit: {}: {} operations\n", rules[r].text, matched[r]);
  }
  const double now = mean_nodelay(scene);
  return text + fmt::format("edited: {:.6g} s a step, speedup {}, saves {:.1f} %\n", then,
                            python_float(now / then), 100 * (1 - then / now));
}

/// The file name of a kind of document, with an ending.
using PathOf = std::function<std::string(const std::string& kind, const std::string& ending)>;

void write_heat_map(const std::string& kind, const std::vector<double>& slowdown, std::int32_t dp,
                    const PathOf& path) {
  const Picture picture = heat_map(slowdown, dp);
  write_file(path(kind, ".svg"), to_svg(picture));
  write_file(path(kind, ".png"), to_png(picture));
}

}  // namespace

ExitCode run_whatif(const WhatIfOptions& options) {
  std::vector<StepRange> ranges;
  for (const std::string& text : options.steps) {
    ranges.push_back(parse_range(text));
  }
  std::vector<EditRule> rules;
  for (const std::string& text : options.edits) {
    rules.push_back(parse_rule(text));
  }
  const FileText meta_text(options.meta, 1 << 20);
  const JobMeta meta = read_job_meta(meta_text.view(), options.meta);
  Warnings warnings;
  Trace trace = read_trace(options.trace, &warnings);
  if (!ranges.empty()) {
    keep_steps(trace, ranges, options.trace);
  }
  sort_rows(trace);
  const OpTable table = make_op_table(
      trace, options.trace, {.drop_incomplete_steps = options.drop_incomplete_steps}, &warnings);
  if (table.dp != meta.dp_size || table.stages != meta.pp_size) {
    warnings.add(
        fmt::format("{}: dp_size {} and pp_size {}, but the trace has {} dp_ranks and {} "
                    "stages; the trace's are used",
                    options.meta, meta.dp_size, meta.pp_size, table.dp, table.stages));
  }
  const DependencyGraph graph =
      make_dependency_graph(table, meta.dsp_size, options.trace, &warnings);
  const Simulator simulator(table, graph, options.trace);
  const Traced traced = measure(table, graph);
  const Model model =
      make_model(table, graph, simulator, traced,
                 std::vector<double>(traced.step_start_s.begin(), traced.step_start_s.end()));
  const Scene scene{table, graph, simulator, traced, model};
  check_times(scene, options.trace);
  const Decompositions blocking = take_apart(scene);
  const Result result = make_result(
      scene, meta, blocking,
      {.decompose_threshold = options.decompose_threshold, .picked_steps = !ranges.empty()});
  const Shares shares = shares_from_zero(scene, result);

  make_folder(options.output);
  const PathOf path = [&](const std::string& kind, const std::string& ending) {
    return (fs::path(options.output) / (kind + "-" + meta.trial_name + ending)).string();
  };
  write_file(path("result", ".json"), result_json(result));
  write_file(path("ms", ".json"), contribution_json(shares.stage, "Ms"));
  write_file(path("mw", ".json"), contribution_json(shares.workers, "Mw"));
  const std::vector<double> approximate =
      approximate_by_worker(blocking.by_dp_rank, blocking.by_stage);
  const Decomposition workers = blocking_by_worker(scene);
  write_heat_map("heatmap", approximate, table.dp, path);
  write_heat_map("heatmap-exact", workers.ratio, table.dp, path);
  const Causes causes =
      find_causes(scene, blocking, options.workers == "min" ? approximate : workers.ratio,
                  workers.per_step, shares.stage);
  write_file(path("causes", ".json"), causes_json(causes, table, meta));
  RecordGzip timeline(path("timeline", ".json.gz"));
  write_timeline(scene, trace, timeline);
  timeline.commit();
  RecordGzip ideal(path("ideal-timeline", ".json.gz"));
  write_ideal_timeline(scene, trace, ideal);
  ideal.commit();
  if (traced.transfers_taken_as_0 > 0) {
    warnings.add(
        fmt::format("{}: {} transfers that end 10 ms before their group began are taken as 0",
                    options.trace, traced.transfers_taken_as_0));
  }
  print_warnings(warnings);
  write_file("-", options.json
                      ? causes_json(causes, table, meta)
                      : overview(result, causes, table, options.output) + edited(scene, rules));
  return ExitCode::kDone;
}

}  // namespace lockstep
