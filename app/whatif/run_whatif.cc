#include "app/whatif/run_whatif.h"

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analysis/whatif/edit.h"
#include "analysis/whatif/job_analysis.h"
#include "analysis/whatif/numbers.h"
#include "app/terminal.h"
#include "app/whatif/documents.h"
#include "app/whatif/follow.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/job_meta.h"

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

EditRule parse_rule(const std::string& text) {
  try {
    return parse_edit(text);
  } catch (Error& error) {
    error.locate("--set");
    throw;
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

/// The answer to --set: step times with all its rules applied, and without.
struct EditedSteps {
  std::vector<EditRule> rules;
  std::vector<std::int64_t> matched;  ///< operations of each rule
  double before = 0, after = 0;       ///< seconds, means of the steps
};

std::optional<EditedSteps> edited_steps(const Scene& scene, std::vector<EditRule> rules,
                                        Warnings& warnings) {
  if (rules.empty()) {
    return std::nullopt;
  }
  EditedSteps edited{.rules = std::move(rules), .matched = {}};
  edited.after = pairwise_mean(simulate_edits(scene, edited.rules, &edited.matched).span);
  edited.before = mean_nodelay(scene);
  for (std::size_t r = 0; r < edited.rules.size(); ++r) {
    if (edited.matched[r] == 0) {
      warnings.add(fmt::format("--set: '{}' is of no operation of the trace",
                               printable(edited.rules[r].text)));
    }
  }
  return edited;
}

std::string to_text(const EditedSteps& edited) {
  std::string text;
  for (std::size_t r = 0; r < edited.rules.size(); ++r) {
    text += fmt::format("edit: {}: {} operations\n", edited.rules[r].text, edited.matched[r]);
  }
  return text + fmt::format("edited: {:.6g} s a step, speedup {}, saves {:.1f} %\n", edited.after,
                            python_float(edited.before / edited.after),
                            100 * (1 - edited.after / edited.before));
}

/// The document with a member `edited` behind all others.
std::string with_edited(std::string json, const EditedSteps& edited) {
  Json rules = Json::array();
  for (std::size_t r = 0; r < edited.rules.size(); ++r) {
    rules.push_back({{"rule", edited.rules[r].text}, {"operations", edited.matched[r]}});
  }
  const bool takes_time = edited.after > 0;
  const std::string member = lockstep::to_text(
      Json{{"edited",
            {{"step_time_s", edited.after},
             {"speedup", takes_time ? Json(edited.before / edited.after) : Json()},
             {"saves", edited.before > 0 ? Json(1 - edited.after / edited.before) : Json()},
             {"saves_s", edited.before - edited.after},
             {"rules", std::move(rules)}}}});
  json.erase(json.rfind('}'));
  json.erase(json.find_last_not_of('\n') + 1);
  return json + "," + member.substr(1);
}

/// ERRORS: `none` beside a form.
std::set<std::string> timeline_forms(const std::vector<std::string>& words) {
  std::set<std::string> forms(words.begin(), words.end());
  if (forms.erase("none") > 0 && !forms.empty()) {
    throw Error("none and another form contradict each other")
        .field("--timelines")
        .expected("none, or one form or several");
  }
  return forms;
}

/// What reading and analysing the files takes in pieces below 4 MiB, in bytes; more than is used
/// costs nothing.
std::size_t heap_for(const std::vector<std::string>& files) {
  constexpr std::uintmax_t kLarge = 8 << 20;
  for (const std::string& file : files) {
    std::error_code none;
    if (const std::uintmax_t size = fs::file_size(file, none); !none && size > kLarge) {
      return std::size_t{256} << 20;
    }
  }
  return std::size_t{32} << 20;
}

}  // namespace

ExitCode run_whatif(const WhatIfOptions& options) {
  grow_heap(heap_for(options.traces));
  std::vector<StepRange> steps;
  for (const std::string& text : options.steps) {
    steps.push_back(parse_range(text));
  }
  const AnalysisOptions analysis{.decompose_threshold = options.decompose_threshold,
                                 .picked_steps = !steps.empty(),
                                 .approximate_workers = options.workers == "min"};
  std::vector<EditRule> rules;
  for (const std::string& text : options.edits) {
    rules.push_back(parse_rule(text));
  }
  if (!options.follow.empty()) {
    return follow({.folder = options.follow,
                   .meta = options.meta,
                   .output = options.output,
                   .alert = {options.alert_slowdown, options.alert_steps},
                   .poll = std::chrono::milliseconds(options.poll_ms),
                   .settle = std::chrono::milliseconds(options.settle_ms),
                   .once = options.once,
                   .json = options.json,
                   .drop_incomplete_steps = options.drop_incomplete_steps,
                   .analysis = analysis});
  }
  check_report_flags(options.report);
  const std::set<std::string> forms = timeline_forms(options.timelines);
  const FileText meta_text(options.meta, Bytes(1 << 20));
  const JobMeta meta = read_job_meta(meta_text.view(), options.meta);
  Warnings warnings;
  const LoadOptions loading{.steps = steps, .drop_incomplete_steps = options.drop_incomplete_steps};
  const JobAnalysis job(load_job(options.traces, loading, &warnings), meta, options.traces.front(),
                        analysis, &warnings);
  compare_with_meta(job.table, meta, options.meta, warnings);
  const auto edited = edited_steps(job.scene, std::move(rules), warnings);
  std::string json;
  if (options.json || options.report.wanted()) {
    json = with_command(causes_json(job.causes, job.table, meta));
    if (edited) {
      json = with_edited(std::move(json), *edited);
    }
    write_reports(options.report, "whatif", json);  // first: it refuses a figure there is not
  }
  write_documents(job, options.output);
  if (job.trace.size() > 0) {
    for (const std::string& form : forms) {
      write_timelines(job, options.output, form == "perfetto");
    }
  } else if (!forms.empty()) {
    warnings.add(fmt::format("{}: more than {} rows: no timelines are written; --steps picks some",
                             options.traces.front(), loading.most_rows));
  }
  print_warnings(warnings);
  write_file("-", options.json
                      ? json
                      : for_terminal(overview(job.result, job.causes, job.table, options.output) +
                                     (edited ? to_text(*edited) : "")));
  return ExitCode::kDone;
}

}  // namespace lockstep
