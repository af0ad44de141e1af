#include "analysis/compare/score.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/compare/join_ranks.h"
#include "base/csv_fields.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_record.h"
#include "base/json.h"
#include "base/missing_path.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/nccl_info.h"

namespace lockstep::compare {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSmall = 1 << 20, kLarge = 64 << 20;

std::string_view band_of(Bytes bytes) {
  return bytes.count() < kSmall   ? "< 1 MiB"
         : bytes.count() < kLarge ? "1 to 64 MiB"
                                  : "from 64 MiB";
}

/// What tables.csv adds to index.csv: which tables are healthy, and their environment.
void take_tables(const std::string& path, PhysicalLog& log, std::set<std::int32_t>& unhealthy) {
  const FileText file(path, Bytes(1 << 28));
  std::string_view text = file.view(), line;
  std::vector<std::string> fields;
  std::map<std::string, std::size_t> columns;
  std::map<std::string, std::int32_t> tables;
  for (std::size_t i = 0; i < log.settings.size(); ++i) {
    tables.emplace(log.settings[i].id, static_cast<std::int32_t>(i));
  }
  if (next_line(text, line)) {
    split_csv(line, fields);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      columns.emplace(fields[i], i);
    }
  }
  const auto column = [&](const char* name) {
    const auto found = columns.find(name);
    return found != columns.end() && found->second < fields.size() ? fields[found->second] : "";
  };
  while (next_line(text, line)) {
    split_csv(line, fields);
    const auto table = tables.find(column("id"));
    if (table == tables.end()) {
      continue;
    }
    take_nccl_environment(column("env"), log.settings[static_cast<std::size_t>(table->second)]);
    if (column("status") != "healthy") {
      unhealthy.insert(table->second);
    }
  }
}

struct Bins {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::vector<double>>
      groups;
  std::map<std::string, std::vector<double>> systems_large, systems_small;
  std::vector<double> large, small, tables_large, tables_small;
};

double median_size(const std::vector<double>& errors) { return error_statistics(errors).median; }

/// Rows of healthy tables, and the logs that they point into.
struct Kept {
  std::deque<PhysicalLog> logs;
  std::vector<ComparedRow> rows;
};

void take_log(PhysicalLog read, const CompareWishes& wishes,
              const std::set<std::int32_t>& unhealthy, Bins& bins, Score& score, Kept& kept) {
  const PhysicalLog& log = kept.logs.emplace_back(std::move(read));
  for (const Warnings::Entry& entry : log.warnings.entries()) {
    score.left_out.add(entry.text, entry.count);
  }
  const std::vector<ComparedRow> rows = predict_rows(log, wishes, score.left_out);
  std::map<const CommSetting*, std::pair<std::vector<double>, std::vector<double>>> tables;
  score.unhealthy_tables += unhealthy.size();
  for (const ComparedRow& row : rows) {
    if (unhealthy.contains(row.row->setting)) {
      continue;
    }
    const std::string system = table_setting(*row.setting, wishes).preset.name;
    const std::int32_t each = std::max(1, row.task.ranks / row.task.servers);
    bins.groups[{system, std::string(name_of(row.task.op)),
                 fmt::format("{}x{}", row.task.servers, each),
                 std::string(band_of(row.task.bytes))}]
        .push_back(row.error());
    const bool large = row.task.bytes.count() >= kSmall;
    (large ? bins.large : bins.small).push_back(row.error());
    (large ? bins.systems_large : bins.systems_small)[system].push_back(row.error());
    auto& table = tables[row.setting];
    (large ? table.first : table.second).push_back(row.error());
    kept.rows.push_back(row);
  }
  for (const auto& [setting, errors] : tables) {
    if (!errors.first.empty()) {
      bins.tables_large.push_back(median_size(errors.first));
    }
    if (!errors.second.empty()) {
      bins.tables_small.push_back(median_size(errors.second));
    }
  }
  score.tables += tables.size();
  score.left_out_tables += log.settings.size() - tables.size();
}

/// The tables of index<suffix>.csv, the healthy ones by tables<suffix>.csv.
void take_index(const std::string& folder, const std::string& suffix, const CompareWishes& wishes,
                Bins& bins, Score& score, Kept& kept) {
  PhysicalLog log = read_logs((fs::path(folder) / ("index" + suffix + ".csv")).string()).at(0);
  std::set<std::int32_t> unhealthy;
  const fs::path tables = fs::path(folder) / ("tables" + suffix + ".csv");
  if (path_exists(tables.string())) {
    take_tables(tables.string(), log, unhealthy);
  }
  take_log(std::move(log), wishes, unhealthy, bins, score, kept);
}

std::vector<ScoreLine> lines_of(const Bins& bins, const std::string& before) {
  std::vector<ScoreLine> lines;
  for (const auto& [key, errors] : bins.groups) {
    lines.push_back({before + std::get<0>(key), std::get<1>(key), std::get<3>(key),
                     std::get<2>(key), error_statistics(errors)});
  }
  std::ranges::stable_sort(lines, [](const ScoreLine& a, const ScoreLine& b) {
    return a.errors.median > b.errors.median;
  });
  return lines;
}

/// Further tables of collectives in a folder: index_NAME.csv, and others whose columns are alike.
void take_others(const std::string& folder, const CompareWishes& wishes, Score& score) {
  std::set<std::string> names;
  std::error_code problem;
  FileRecord::note_listed(folder);
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(".csv") && file != "index.csv" && !file.starts_with("tables")) {
      names.insert(file.substr(0, file.size() - 4));
    }
  }
  for (const std::string& name : names) {
    Bins bins;
    Score apart;
    Kept kept;
    const bool index = name.starts_with("index_");
    if (index) {
      take_index(folder, name.substr(5), wishes, bins, apart, kept);
    } else {
      try {
        for (PhysicalLog& log : read_logs((fs::path(folder) / (name + ".csv")).string())) {
          if (log.format == "collective-csv") {
            take_log(std::move(log), wishes, {}, bins, apart, kept);
          }
        }
      } catch (const Error&) {
        continue;  // no table of collectives
      }
    }
    for (ScoreLine& line : lines_of(bins, (index ? name.substr(6) : name) + ": ")) {
      score.others.push_back(std::move(line));
    }
  }
}

/// In the order of their names.
std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code problem;
  FileRecord::note_listed(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder, problem)) {
    if (entry.is_regular_file()) {
      files.push_back(entry.path().string());
    }
  }
  std::ranges::sort(files);
  return files;
}

/// Traces of ranks, one folder's, which are taken to be of one run: each collective once, as long
/// as its last rank took. Times that may hold waiting are none of a collective's.
std::vector<PhysicalLog> joined_ranks(std::vector<PhysicalLog> logs, Warnings& left_out) {
  try {
    take_last_arrivals(logs);
  } catch (const Error&) {
    left_out.add("folders with traces of ranks of more than one run");
  }
  for (PhysicalLog& log : logs) {
    const auto waiting = std::erase_if(log.comms, [](const CommRow& row) { return row.waits; });
    if (waiting > 0) {
      left_out.add("times of one rank that may include waiting for the others",
                   static_cast<std::int64_t>(waiting));
    }
    log.ops = {};  // which take much more memory than what is compared
  }
  std::erase_if(logs, [](const PhysicalLog& log) { return log.comms.empty(); });
  return logs;
}

}  // namespace

Score score_folder(const std::string& folder, const CompareWishes& wishes, bool halves) {
  if (!is_folder(folder)) {
    throw Error("there is no such folder")
        .at(folder)
        .expected("a folder of measurements")
        .hint(hint_of_missing(folder));
  }
  Score score;
  Bins bins;
  Kept kept;
  std::optional<Error> unread;  // why the first file that is left out is
  if (path_exists((fs::path(folder) / "index.csv").string())) {
    take_index(folder, "", wishes, bins, score, kept);
    take_others(folder, wishes, score);
  } else {
    std::map<std::string, std::vector<PhysicalLog>> ranks;  // by folder, traces of ranks
    for (const std::string& file : files_below(folder)) {
      try {
        for (PhysicalLog& log : read_logs(file)) {
          if (std::ranges::any_of(log.comms, &CommRow::waits)) {
            ranks[fs::path(file).parent_path().string()].push_back(std::move(log));
          } else {
            take_log(std::move(log), wishes, {}, bins, score, kept);
          }
        }
      } catch (const Error& error) {
        score.left_out.add("files that are no logs of collectives");
        if (!unread) {
          unread = error;
        }
      }
    }
    for (auto& [path, logs] : ranks) {
      for (PhysicalLog& log : joined_ranks(std::move(logs), score.left_out)) {
        take_log(std::move(log), wishes, {}, bins, score, kept);
      }
    }
  }
  if (bins.large.empty() && bins.small.empty()) {
    Error nothing("nothing in this folder can be predicted");
    if (unread) {
      nothing.add_context(fmt::format("the first file left out: {}", unread->what()));
    } else if (!score.left_out.entries().empty()) {
      nothing.add_context(fmt::format("left out: {}", score.left_out.entries().front().text));
    }
    throw std::move(nothing).at(folder);
  }
  score.large = error_statistics(bins.large);
  score.small = error_statistics(bins.small);
  score.tables_large = error_statistics(bins.tables_large);
  score.tables_small = error_statistics(bins.tables_small);
  for (const auto& [list, band] :
       {std::pair{&bins.systems_large, "from 1 MiB"}, std::pair{&bins.systems_small, "< 1 MiB"}}) {
    for (const auto& [system, errors] : *list) {
      score.systems.push_back({system, "all", band, "all", error_statistics(errors)});
    }
  }
  score.groups = lines_of(bins, "");
  const auto worst_first = [](const ScoreLine& a, const ScoreLine& b) {
    return a.errors.median > b.errors.median;
  };
  std::ranges::stable_sort(score.systems, worst_first);
  if (halves) {
    score.halves = fit_by_halves(kept.rows, wishes);
  }
  return score;
}

namespace {

std::string halves_markdown(const ByHalves& halves) {
  std::string text =
      "\n## Calibrated by halves\n\n"
      "Clusters of four tables and more, rows of 1 MiB and more, median and p90: each half of the "
      "tables predicted by\nrates that `calibrate` fitted to the other (how often it kept the "
      "preset's, which were tuned on both), and the\nsame from the model's default rates in place "
      "of the preset's. Then how far the measurements are from each other:\nfrom the median of the "
      "other half's of the same operation, size, GPUs, servers, release, links and GDRCopy;\n"
      "and from the rate of their neighbours in size, within a quarter, in their "
      "own table. Last, how many\nof the rows whose like is in several tables can be within 12 % "
      "by "
      "any model that gives like rows one time: below\n90 % a 90th percentile of 12 % is out of "
      "reach. The worst first.\n\n"
      "| cluster | tables | rows | preset | calibrated | kept | from defaults | the other half's "
      "like | rows | neighbours | rows | can be within 12 % |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  const auto pair = [](const ErrorStatistics& e) {
    return e.rows == 0 ? std::string("none")
                       : fmt::format("{}, {}", percent(e.median), percent(e.p90));
  };
  for (const HalvesLine& line : halves.systems) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} of 2 | {} | {} | {} | {} | {} | {} |\n",
                        line.system, line.tables, line.after.rows, pair(line.before),
                        pair(line.after), line.kept, pair(line.from_defaults),
                        pair(line.repeats.other_half), line.repeats.other_half.rows,
                        pair(line.repeats.own_table), line.repeats.own_table.rows,
                        line.repeats.repeated == 0 ? "" : percent(line.repeats.within_reach));
  }
  return text + fmt::format("| all | | {} | {} | {} | | {} | | | | | |\n", halves.after.rows,
                            pair(halves.before), pair(halves.after), pair(halves.from_defaults));
}

}  // namespace

std::string score_markdown(const Score& score) {
  std::string text = fmt::format(
      "# Accuracy of the model of collectives\n\n"
      "Written by `lockstep score`. {} tables of measurements; {} left out{}. Error of time, "
      "predicted / measured - 1.\nThe presets' files say which tables their rates were tuned on: "
      "errors on those tell how well the model\ncan be made to fit, not how it does elsewhere. The "
      "worst first.\n\n"
      "| | rows | median size | p90 | bias | worst |\n|---|---|---|---|---|---|\n",
      score.tables, score.left_out_tables,
      score.unhealthy_tables == 0 ? ""
      : score.unhealthy_tables == score.left_out_tables
          ? " as unhealthy"
          : fmt::format(" ({} as unhealthy)", score.unhealthy_tables));
  const auto numbers = [](const ErrorStatistics& e) {
    return fmt::format("{} | {} | {} | {} | {} |\n", e.rows, percent(e.median), percent(e.p90),
                       percent(e.bias, true), percent(e.worst, true));
  };
  const auto sum = [&](const char* what, const ErrorStatistics& e) {
    text += e.rows > 0 ? fmt::format("| {} | ", what) + numbers(e) : "";
  };
  sum("1 MiB and more, all rows", score.large);
  sum("below 1 MiB, all rows", score.small);
  sum("1 MiB and more, medians of the tables", score.tables_large);
  sum("below 1 MiB, medians of the tables", score.tables_small);
  if (!score.left_out.entries().empty()) {
    text += "\n| times | left out, or read with a warning |\n|---|---|\n";
    for (const Warnings::Entry& entry : score.left_out.entries()) {
      text += fmt::format("| {} | {} |\n", entry.count, entry.text);
    }
  }
  text +=
      "\n| system | size | rows | median size | p90 | bias | worst "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const ScoreLine& line : score.systems) {
    text += fmt::format("| {} | {} | ", line.system, line.band) + numbers(line.errors);
  }
  text +=
      "\n| system | op | servers x GPUs | size | rows | median size | p90 | bias | worst |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const ScoreLine& line : score.groups) {
    text += fmt::format("| {} | {} | {} | {} | ", line.system, line.op, line.gpus, line.band) +
            numbers(line.errors);
  }
  text += score.halves ? halves_markdown(*score.halves) : "";
  if (!score.others.empty()) {
    text +=
        "\n## Other tables\n\nTables that no preset was tuned on; not in the sums above.\n\n"
        "| tables: preset | op | servers x GPUs | size | rows | median size | p90 | bias | worst "
        "|\n"
        "|---|---|---|---|---|---|---|---|---|\n";
    for (const ScoreLine& line : score.others) {
      text += fmt::format("| {} | {} | {} | {} | ", line.system, line.op, line.gpus, line.band) +
              numbers(line.errors);
    }
  }
  return text;
}

std::string score_json(const Score& score) {
  const auto numbers = [](const ErrorStatistics& e) {
    Json json;
    json["rows"] = e.rows;
    json["median_error"] = e.median;
    json["p90_error"] = e.p90;
    json["bias"] = e.bias;
    json["worst_error"] = e.worst;
    return json;
  };
  const auto lines = [&](const std::vector<ScoreLine>& list) {
    Json json = Json::array();
    for (const ScoreLine& line : list) {
      Json each;
      each["system"] = line.system;
      each["op"] = line.op;
      each["gpus"] = line.gpus;
      each["size"] = line.band;
      each.update(numbers(line.errors));
      json.push_back(std::move(each));
    }
    return json;
  };
  Json json;
  json["schema"] = "lockstep-score/1";
  json["tables"] = score.tables;
  json["left_out_tables"] = score.left_out_tables;
  json["warnings"] = Json::array();
  for (const Warnings::Entry& entry : score.left_out.entries()) {
    json["warnings"].push_back({{"text", entry.text}, {"count", entry.count}});
  }
  json["from_1MiB"] = numbers(score.large);
  json["below_1MiB"] = numbers(score.small);
  json["from_1MiB_by_table"] = numbers(score.tables_large);
  json["below_1MiB_by_table"] = numbers(score.tables_small);
  json["systems"] = lines(score.systems);
  json["groups"] = lines(score.groups);
  json["others"] = lines(score.others);
  if (score.halves) {
    Json list = Json::array();
    for (const HalvesLine& line : score.halves->systems) {
      list.push_back({{"cluster", line.system},
                      {"tables", line.tables},
                      {"kept", line.kept},
                      {"preset", numbers(line.before)},
                      {"calibrated", numbers(line.after)},
                      {"calibrated_from_defaults", numbers(line.from_defaults)},
                      {"other_half", numbers(line.repeats.other_half)},
                      {"own_table", numbers(line.repeats.own_table)},
                      {"repeated_rows", line.repeats.repeated},
                      {"can_be_within_12_percent", line.repeats.within_reach}});
    }
    json["halves"] = {{"clusters", std::move(list)},
                      {"preset", numbers(score.halves->before)},
                      {"calibrated", numbers(score.halves->after)},
                      {"calibrated_from_defaults", numbers(score.halves->from_defaults)}};
  }
  return to_text(json);
}

}  // namespace lockstep::compare
