#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "analysis/compare/calibrate.h"
#include "analysis/compare/join_ranks.h"
#include "app/compare/compare_options.h"
#include "app/terminal.h"
#include "app/warnings_out.h"
#include "base/atomic_file.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

using compare::Calibration;
using compare::ErrorStatistics;
using compare::percent;

std::string as_table(const Calibration& result) {
  std::string text = fmt::format("{:<20} {:>12} {:>12}   95 %\n", "rate", "before", "fitted");
  for (const compare::FittedRate& rate : result.fitted) {
    text += fmt::format("{:<20} {:>12.4g} {:>12.4g}   {:.4g} to {:.4g}\n", rate.name, rate.before,
                        rate.after, rate.interval.low, rate.interval.high);
  }
  for (const std::string& left : result.left) {
    text += fmt::format("not fitted: {}\n", left);
  }
  const auto validated = [](const compare::ValidatedError& error) {
    return fmt::format("mean {}, p90 {}", percent(std::expm1(error.mean)),
                       percent(std::expm1(error.p90)));
  };
  text += fmt::format("{}left out within the training half: {}; by the preset: {}\n",
                      result.preset_kept ? "the preset's rates are kept; " : "",
                      validated(result.validated), validated(result.preset_validated));
  const auto line = [](const char* what, const ErrorStatistics& e) {
    if (e.rows == 0) {
      return std::string();
    }
    return fmt::format("{:<36} {:>6} rows  median {:>7}  p90 {:>7}  bias {:>7}\n", what, e.rows,
                       percent(e.median), percent(e.p90), percent(e.bias, true));
  };
  text += line("training half, all sizes", result.training);
  text += line("held-out half, all sizes", result.held_out);
  text += line("training half, 1 MiB and more", result.training_large);
  text += line("held-out half, 1 MiB and more", result.held_out_large);
  text += line("  the same before the fit", result.before_held_out_large);
  return text;
}

std::string as_json(const Calibration& result) {
  Json json;
  json["schema"] = "lockstep-calibration/1";
  json["preset"] = parse_json(to_json_text(result.preset), "preset");
  json["left"] = result.left;
  json["preset_kept"] = result.preset_kept;
  for (const auto& [key, error] :
       {std::pair{"validated", result.validated}, {"validated_preset", result.preset_validated}}) {
    json[key]["mean_error"] = std::expm1(error.mean);
    json[key]["p90_error"] = std::expm1(error.p90);
  }
  json["training"] = to_json(result.training);
  json["held_out"] = to_json(result.held_out);
  json["training_from_1MiB"] = to_json(result.training_large);
  json["held_out_from_1MiB"] = to_json(result.held_out_large);
  json["held_out_from_1MiB_before"] = to_json(result.before_held_out_large);
  return to_text(json);
}

/// The rates are chosen by the training half alone, which may be unlike the other.
/// Some of the tables' ids.
std::string ids_of(const std::vector<PhysicalLog>& logs) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> ids;
  std::size_t all = 0;
  for (const PhysicalLog& log : logs) {
    for (const CommSetting& setting : log.settings) {
      if (++all <= kMost) {
        ids.push_back(printable(setting.id, 60));
      }
    }
  }
  return fmt::format("{}{}", fmt::join(ids, ", "), all > kMost ? ", …" : "");
}

void warn_if_worse(const Calibration& result) {
  const double before = result.before_held_out_large.median, after = result.held_out_large.median;
  if (result.held_out_large.rows > 0 && after > 1.5 * before + 0.02) {
    Warnings warnings;
    warnings.add(fmt::format(
        "on the held-out half the fitted rates are worse than the preset's (median error {}, "
        "before {}): the two halves are not one cluster in one state, and the fit is not to be "
        "used",
        percent(after), percent(before)));
    print_warnings(warnings);
  }
}

}  // namespace

CommandBody define_calibrate(CLI::App& app) {
  struct Flags {
    ClusterFlags cluster;
    std::vector<std::string> logs, fit, tables;
    std::string output, name;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("logs", flags->logs, "logs of collectives of one cluster")->required();
  app.add_option("-o,--output", flags->output, "preset file to write; - is standard output")
      ->required();
  app.add_option("--name", flags->name, "of the preset (default: that it started from)");
  app.add_option("--fit", flags->fit, "rates to fit (default: all that the logs determine)")
      ->delimiter(',');
  app.add_option("--table", flags->tables, "tables to take: those whose id has this text")
      ->delimiter(',');
  app.add_flag("--json", flags->json, "print the result as one JSON document");
  define_cluster_flags(app, flags->cluster);
  return [flags] {
    const compare::CompareWishes wishes = wishes_of(flags->cluster);
    Warnings left_out;
    std::vector<PhysicalLog> logs = logs_of(flags->logs);
    print_warnings(warnings_of(logs));
    compare::take_last_arrivals(logs);
    std::vector<compare::ComparedRow> rows;
    for (const PhysicalLog& log : logs) {
      for (compare::ComparedRow& row : compare::predict_rows(log, wishes, left_out)) {
        bool taken = flags->tables.empty() && row.pattern.empty();
        for (const std::string& text : flags->tables) {
          taken = taken || (row.pattern.empty() && row.setting->id.find(text) != std::string::npos);
        }
        if (taken && row.row->waits) {
          left_out.add("times of one rank that may include waiting for the others");
        } else if (taken) {
          rows.push_back(std::move(row));
        }
      }
    }
    print_warnings(left_out);
    if (rows.empty() && !flags->tables.empty()) {
      throw Error(fmt::format("no table's id has '{}'",
                              printable(fmt::format("{}", fmt::join(flags->tables, "', '")))))
          .field("--table")
          .hint("such ids are " + ids_of(logs));
    }
    Calibration result = compare::calibrate(rows, wishes, flags->fit);
    if (!flags->name.empty()) {
      result.preset.name = flags->name;
    }
    warn_if_worse(result);
    write_file(flags->output, to_json_text(result.preset));
    if (flags->output != "-") {
      write_file("-", flags->json ? as_json(result) : for_terminal(as_table(result)));
    }
    return ExitCode::kDone;
  };
}

}  // namespace lockstep
