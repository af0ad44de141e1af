#include "app/compare/run_compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analysis/compare/errors.h"
#include "analysis/compare/steps.h"
#include "app/compare/on_topology.h"
#include "app/compare/training_logs.h"
#include "app/flag_value.h"
#include "app/report_flags.h"
#include "app/terminal.h"
#include "app/warnings_out.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/output_capture.h"
#include "base/text.h"
#include "report/compare_report.h"

namespace lockstep {
namespace {

constexpr double kExplained = 0.15;  // errors above it are explained

struct Flags {
  ClusterFlags cluster;
  std::vector<std::string> logs, against;
  std::string fail_over, picture, engine;
  bool limited = false;  // by --fail-over
  bool json = false;
  ReportFlags report;
};

/// The largest median size of the error among the tables: an operation on a group of a log.
double worst_table(const std::vector<compare::ComparedRow>& rows) {
  std::map<std::tuple<const CommSetting*, CommType, std::int32_t, std::int32_t>,
           std::vector<double>>
      tables;
  for (const compare::ComparedRow& row : rows) {
    tables[{row.setting, row.task.op, row.task.ranks, row.group}].push_back(row.error());
  }
  double worst = 0;
  for (const auto& [key, errors] : tables) {
    worst = std::max(worst, compare::error_statistics(errors).median);
  }
  return worst;
}

std::vector<PhysicalLog> logs_of_steps(const std::vector<std::string>& paths) {
  std::vector<PhysicalLog> logs = logs_of(paths);
  print_warnings(warnings_of(logs));
  for (const PhysicalLog& log : logs) {
    if (log.ops.empty() && log.steps.empty()) {
      throw Error("the log holds no operations or steps")
          .at(log.file)
          .expected("a trace of a step");
    }
  }
  return logs;
}

/// Who predicts: "flow", on the topology, or "formula" (nccl_time.h).
std::string predictor(const Flags& flags) {
  const bool on_topology = !flags.cluster.topology.empty();
  if (flags.engine.empty()) {
    return on_topology && flags.cluster.preset.empty() ? "flow" : "formula";
  }
  if (flags.engine != "formula" && !on_topology) {
    throw Error("an engine carries transfers out on a topology")
        .field("--engine")
        .hint("name the --topology, or leave the prediction to the formula");
  }
  return flags.engine;
}

/// ERRORS: a flag that a training's step does not heed.
void check_flags_of_training(const Flags& flags) {
  const ClusterFlags& cluster = flags.cluster;
  const std::pair<const char*, bool> of_collectives[] = {
      {"--picture", !flags.picture.empty()},
      {"--gpus", cluster.gpus > 0},
      {"--op", !cluster.op.empty()},
      {"--gpus-per-server", cluster.gpus_per_server > 0},
      {"--nccl-version", !cluster.nccl_version.empty()},
      {"--engine formula", flags.engine == "formula"}};
  for (const auto& [flag, given] : of_collectives) {
    if (given) {
      throw Error("the step of a training's log is of its own arguments, on the --topology")
          .at(flags.logs.front())
          .field(flag)
          .hint("lockstep simulate --from-megatron-args LOG takes the flags of a step");
    }
  }
}

/// ERRORS: a flag of predictions, which two runs of a step need none of.
void check_flags_against(const Flags& flags) {
  if (!flags.picture.empty()) {
    throw Error("curves are of collectives, not of steps").field("--picture");
  }
  const ClusterFlags& cluster = flags.cluster;
  const std::pair<const char*, bool> of_predictions[] = {
      {"--preset", !cluster.preset.empty()},
      {"--topology", !cluster.topology.empty()},
      {"--gpus", cluster.gpus > 0},
      {"--op", !cluster.op.empty()},
      {"--gpus-per-server", cluster.gpus_per_server > 0},
      {"--nccl-version", !cluster.nccl_version.empty()},
      {"--engine", !flags.engine.empty()}};
  for (const auto& [flag, given] : of_predictions) {
    if (given) {
      throw Error("--against lays a run beside another, and nothing is predicted").field(flag);
    }
  }
}

ExitCode run_against(const Flags& flags, std::optional<double> limit) {
  check_flags_against(flags);
  const std::vector<PhysicalLog> first = logs_of_steps(flags.logs),
                                 second = logs_of_steps(flags.against);
  compare::StepComparison steps = compare::compare_steps(first, second);
  for (const auto* logs : {&first, &second}) {
    const Warnings told = warnings_of(*logs);
    for (const Warnings::Entry& entry : told.entries()) {
      steps.warnings.add(entry.text);
    }
  }
  const std::optional<double> difference = steps.difference();
  if (limit && !difference) {
    throw Error("the first run tells no times")
        .field("--fail-over")
        .expected("a run whose steps take longer than 0 s");
  }
  const std::string json = with_command(compare::steps_json(steps));
  write_reports(flags.report, "compare", json);
  write_file("-", flags.json ? json : for_terminal(compare::steps_table(steps)));
  if (limit && std::abs(*difference) > *limit) {
    fmt::print(standard_error(), "lockstep: a step of the second run takes {}, over {}\n",
               compare::percent(*difference, true), compare::percent(*limit));
    return ExitCode::kCheckFailed;
  }
  return ExitCode::kDone;
}

std::int64_t communications_in(const std::vector<PhysicalLog>& logs) {
  std::int64_t count = 0;
  for (const PhysicalLog& log : logs) {
    count += std::ranges::count(log.ops, OpKind::kCommunication, &OpRow::kind);
  }
  return count;
}

/// Where a log has sizes but tells no groups, its communications as those of all GPUs of the run.
/// Returns how many.
std::int64_t take_ungrouped(std::vector<PhysicalLog>& logs) {
  std::int64_t taken = 0;
  for (PhysicalLog& log : logs) {
    if (!log.comms.empty()) {
      continue;
    }
    for (std::size_t i = 0; i < log.ops.size(); ++i) {
      const OpRow& op = log.ops[i];
      if (op.kind != OpKind::kCommunication || op.op == CommType::kNone || op.bytes <= 0 ||
          op.group_size != 0 || op.duration_s <= 0) {
        continue;
      }
      if (log.settings.empty()) {
        CommSetting& setting = log.settings.emplace_back();
        setting.id = log.file.substr(log.file.rfind('/') + 1);
        setting.program = log.format;
      }
      CommRow row;
      row.op = op.op;
      row.name = op.name;
      row.bytes = Bytes(op.bytes);
      row.time_s = op.duration_s;
      row.waits = true;
      row.op_row = static_cast<std::int64_t>(i);
      log.comms.push_back(row);
      ++taken;
    }
  }
  return taken;
}

ExitCode run(const Flags& flags) {
  check_report_flags(flags.report);
  std::optional<double> limit;
  if (flags.limited) {
    limit = flag_value("--fail-over", flags.fail_over, parse_share);
  }
  if (!flags.against.empty()) {
    return run_against(flags, limit);
  }
  const std::string_view picture = flags.picture;
  if (!picture.empty() && !picture.ends_with(".svg") && !picture.ends_with(".png")) {
    throw Error("unknown kind of picture '" + printable(picture) + "'")
        .field("--picture")
        .expected("a name that ends in .svg or .png");
  }
  std::vector<PhysicalLog> logs = logs_of(flags.logs);
  if (are_training_logs(logs)) {
    check_flags_of_training(flags);
    print_warnings(warnings_of(logs));
    return compare_training_logs(
        logs, {flags.cluster.topology, flags.cluster.preset, limit, flags.json, flags.report});
  }
  CompareReport report;
  const std::string engine = predictor(flags);
  report.wishes = wishes_of(flags.cluster);
  report.logs = flags.logs;
  if (flags.cluster.gpus > 0) {
    if (const std::int64_t taken = take_ungrouped(logs); taken > 0) {
      report.notes.add(fmt::format(
          "the log tells no groups: {} communications are taken for those of all {} GPUs (--gpus)",
          taken, flags.cluster.gpus));
    }
  }
  compare::take_last_arrivals(logs);
  for (const PhysicalLog& log : logs) {
    for (compare::ComparedRow& row :
         compare::predict_rows(log, report.wishes, report.left_out, &report.notes)) {
      report.rows.push_back(std::move(row));
    }
  }
  report.warnings = warnings_of(logs);
  print_warnings(report.warnings);
  if (engine != "formula") {
    predict_on_topology(report.rows, flags.cluster.topology, flags.cluster.preset, report.left_out);
  }
  if (report.rows.empty()) {
    std::string why = "the logs hold no collectives";
    if (!report.left_out.entries().empty()) {
      why = report.left_out.entries().front().text;
    } else if (const std::int64_t unsized = communications_in(logs); unsized > 0) {
      std::int64_t sized = 0;
      for (const PhysicalLog& log : logs) {
        sized += std::ranges::count_if(log.ops, [](const OpRow& op) {
          return op.kind == OpKind::kCommunication && op.bytes > 0;
        });
      }
      why = sized > 0 ? fmt::format(
                            "of the logs' {} communications {} have a size, and none has a "
                            "group's size; --gpus N takes them for those of N GPUs",
                            unsized, sized)
                      : fmt::format(
                            "of the logs' {} communications none has a size (PyTorch's profiler "
                            "writes them from 2.2 on, before that some of them with "
                            "record_shapes=True)",
                            unsized);
    }
    const bool steps = std::ranges::any_of(logs, [](const auto& log) { return !log.ops.empty(); });
    throw Error("there is nothing to compare: " + why)
        .at(flags.logs.front())
        .hint(steps ? "operations of steps are laid beside another run's by --against" : "");
  }
  compare::explain_rows(report.rows, report.wishes, kExplained);
  print_warnings(report.notes);
  print_warnings(report.left_out);
  if (!flags.picture.empty()) {
    const Picture curves = compare_picture(report);
    write_file(flags.picture, picture.ends_with(".png") ? to_png(curves) : to_svg(curves));
  }
  const std::string json = with_command(compare_json(report));
  write_reports(flags.report, "compare", json);
  write_file("-", flags.json ? json : for_terminal(compare_table(report)));
  const double worst = worst_table(report.rows);
  if (limit && worst > *limit) {
    fmt::print(standard_error(), "lockstep: the median error of a table is {}, over {}\n",
               compare::percent(worst), compare::percent(*limit));
    return ExitCode::kCheckFailed;
  }
  return ExitCode::kDone;
}

}  // namespace

double parse_share(std::string_view text) {
  std::string_view number = trim(text);
  const bool percent = number.ends_with('%');
  if (percent) {
    number = trim(number.substr(0, number.size() - 1));
  }
  const auto value = to_double(number);
  if (!value || *value < 0) {
    throw Error("'" + printable(text) + "' is no share").expected("such as 10% or 0.1");
  }
  if (!percent && *value > 1) {
    throw Error("'" + printable(text) + "' is more than all")
        .expected("such as 10% or 0.1")
        .hint(printable(number) + "% is so many percent");
  }
  return percent ? *value / 100 : *value;
}

CommandBody define_comparison(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("logs", flags->logs, "logs of real runs (docs/compare.md lists the kinds)");
  app.add_option(
      "--against", flags->against,
      "logs of another run of the same steps, measured or simulated: where the time differs");
  const CLI::Option* fail_over = app.add_option(
      "--fail-over", flags->fail_over,
      "exit code 1 if the median error of a table, or with --against the difference of the "
      "steps, is over this, such as 10%");
  app.add_option("--picture", flags->picture, "curves of bus bandwidth: .svg or .png to write");
  app.add_flag("--json", flags->json, "one JSON document (docs/formats/compare-json.md)");
  define_report_flags(app, flags->report);
  define_cluster_flags(app, flags->cluster);
  app.add_option(
         "--engine", flags->engine,
         "who predicts: flow, on the topology, or formula; default: flow with a --topology alone")
      ->check(CLI::IsMember({"flow", "formula"}));
  return [flags, fail_over] {
    flags->limited = fail_over->count() > 0;
    if (flags->logs.empty()) {
      throw Error("no log is given").field("logs").hint("lockstep compare --help has examples");
    }
    return run(*flags);
  };
}

}  // namespace lockstep
