#include "app/sweep/run_sweep.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "app/sweep/coordinator.h"
#include "app/sweep/grid_flags.h"
#include "app/sweep/identity.h"
#include "app/sweep/same_files.h"
#include "app/sweep/sweep_table.h"
#include "app/sweep/worker.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/output_capture.h"
#include "base/progress.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "report/html/report_document.h"
#include "trace/read_trace.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

void warn(const std::string& text) {
  fmt::print(standard_error(), "lockstep: warning: {}\n", text);
}

/// The two files that people open, whole at any time: written anew under another name and renamed,
/// more seldom the longer that takes. Where Parquet cannot be written an older file of that name
/// goes: it would be of other rows than the CSV beside it.
class TableFiles {
 public:
  TableFiles(const Grid& grid, const std::string& folder)
      : grid_(grid), csv_(folder + "/table.csv"), parquet_(folder + "/table.parquet") {}

  ColumnTable write(const std::map<std::int64_t, SweepRow>& rows) {
    const auto begin = Clock::now();
    ColumnTable table = sweep_table(grid_, rows);
    std::error_code problem;
    if (!has_parquet() && std::filesystem::remove(parquet_, problem)) {
      warn(fmt::format("{} is removed: it is of an earlier run, and Parquet cannot be written here",
                       parquet_));
    } else if (problem) {
      throw Error(fmt::format("cannot remove the table of an earlier run: {}", problem.message()))
          .at(parquet_);
    }
    write_file(csv_, to_csv(table));
    if (has_parquet()) {
      write_file(parquet_, to_parquet(table));
    }
    constexpr int kShare = 20;  // at most a twentieth of the time goes into it
    const auto end = Clock::now();
    due_ = end + std::max<Clock::duration>(kShare * (end - begin), std::chrono::seconds(2));
    written_ = rows.size();
    return table;
  }
  void write_if_due(const std::map<std::int64_t, SweepRow>& rows) {
    if (rows.size() > written_ && Clock::now() >= due_) {
      write(rows);
    }
  }

  const std::string& csv() const { return csv_; }
  std::string parquet() const { return has_parquet() ? parquet_ : ""; }

 private:
  const Grid& grid_;
  std::string csv_, parquet_;
  Clock::time_point due_ = Clock::now() + std::chrono::seconds(1);
  std::size_t written_ = 0;
};

void print_lines(const Grid& grid, const SweepOptions& options) {
  std::string text;
  Json lines = Json::array();
  for (std::int64_t point = 0; point < grid.size(); ++point) {
    const SweepTask task = sweep_task(grid, point, options.output, options.keep);
    if (options.json) {
      lines.push_back({{"point", point}, {"arguments", task.command.arguments}});
    } else {
      text += fmt::format("{}: lockstep {}\n", point, fmt::join(task.command.arguments, " "));
    }
  }
  if (options.json) {
    text = to_text(Json{{"schema", "lockstep-sweep-list/1"}, {"points", std::move(lines)}});
  }
  write_file("-", text);
}

using Endings = std::map<std::string_view, std::int64_t>;

/// The summary, and the table where it has at most kMostRows rows: others are read from its files.
Json summary_json(const Grid& grid, const ColumnTable& table, const Endings& endings,
                  std::int64_t rows, std::int64_t computed, const TableFiles& files,
                  const std::vector<std::string>& missing) {
  constexpr std::int64_t kMostRows = 100'000;
  Json ends = Json::object(), axes = Json::array();
  for (const auto& [ending, count] : endings) {
    ends[std::string(ending)] = count;
  }
  for (const GridAxis& axis : grid.axes) {
    for (const std::string& flag : axis.flags) {
      axes.push_back(flag);
    }
  }
  Json json{{"schema", "lockstep-sweep/1"},
            {"command", command_line()},
            {"grid", grid.file},
            {"points", grid.size()},
            {"rows", rows},
            {"computed_now", computed},
            {"endings", std::move(ends)},
            {"csv", files.csv()},
            {"parquet", files.parquet()},
            {"axes", std::move(axes)}};
  if (!missing.empty()) {
    json["missing_outputs"] = missing;
  }
  if (rows <= kMostRows) {
    json["columns"] = columns_json(table);
  }
  return json;
}

/// Keys of `outputs` that no row has which is done; none while no row is.
std::vector<std::string> missing_outputs(const Grid& grid, const SweepJournal& journal) {
  std::set<std::string> missing(grid.outputs.begin(), grid.outputs.end());
  bool any = false;
  for (const auto& [point, row] : journal.rows()) {
    any = any || row.ending == Ending::kDone;
    for (const auto& [key, value] : row.outputs) {
      missing.erase(key);
    }
  }
  return any ? std::vector<std::string>(missing.begin(), missing.end())
             : std::vector<std::string>();
}

void print_summary(const SweepOptions& options, const Grid& grid, const SweepJournal& journal,
                   std::int64_t computed, const TableFiles& files, const ColumnTable& table) {
  Endings endings;
  for (const auto& [point, row] : journal.rows()) {
    ++endings[to_text(row.ending)];
  }
  if (options.json || options.report.wanted()) {
    const Json json = summary_json(grid, table, endings, std::ssize(journal.rows()), computed,
                                   files, missing_outputs(grid, journal));
    if (options.report.wanted()) {
      write_reports(options.report, {{"lockstep sweep", json}});
    }
    if (options.json) {
      write_file("-", to_text(json));
      return;
    }
  }
  std::string text = fmt::format("{} of {} points, {} of them computed now:", journal.rows().size(),
                                 grid.size(), computed);
  for (const auto& [ending, count] : endings) {
    text += fmt::format(" {} {}", count, ending);
  }
  text += fmt::format("\nwritten: {}{}{}\n", files.csv(), files.parquet().empty() ? "" : ", ",
                      files.parquet());
  write_file("-", text);
}

/// As soon as one point is done: what it has not that was asked for.
class OutputWarning {
 public:
  OutputWarning(const Grid& grid, const SweepJournal& journal) : grid_(grid), journal_(journal) {}

  void look() {
    const SweepRow* row = told_ ? nullptr : journal_.first_done();
    if (row == nullptr) {
      return;
    }
    told_ = true;
    for (const std::string& key : grid_.outputs) {
      if (std::ranges::find(row->outputs, key, &std::pair<std::string, Json>::first) ==
          row->outputs.end()) {
        warn(
            fmt::format("{}: outputs: point {}, which is done, has no '{}'; what there is, "
                        "'lockstep {} … --json' shows",
                        grid_.file, row->point, printable(key), grid_.command));
      }
    }
    if (grid_.outputs.empty() && std::ranges::none_of(row->outputs, [](const auto& output) {
          return output.second.is_number_float();
        })) {
      warn(
          fmt::format("{}: point {}, which is done, has no number in the table that was computed: "
                      "lists of several are left out. 'outputs:' names what to take from them, "
                      "such as points.0.size_bytes",
                      grid_.file, row->point));
    }
  }

 private:
  const Grid& grid_;
  const SweepJournal& journal_;
  bool told_ = false;
};

/// The ranks, told to stop when this goes.
class JoinedCrew {
 public:
  explicit JoinedCrew(const LaunchedRank& launched)
      : crew_(launched.size > 1 ? join_crew(launched) : nullptr) {}
  ~JoinedCrew() { tell(std::string(kStopLetter)); }
  JoinedCrew(const JoinedCrew&) = delete;
  JoinedCrew& operator=(const JoinedCrew&) = delete;
  Crew* get() const { return crew_.get(); }
  /// Sends it to all others.
  void tell(const std::string& letter) const {
    for (int rank = 1; crew_ != nullptr && rank < crew_->size(); ++rank) {
      crew_->send(rank, letter);
    }
  }

 private:
  std::unique_ptr<Crew> crew_;
};

Grid read_grid(const SweepOptions& options) {
  constexpr Bytes kMostYaml(1 << 24);  // its tree takes 75 times as much
  const FileText text(options.grid, kMostYaml);
  Grid grid = parse_grid(text.view(), options.grid);
  check_flags(grid);
  if (const std::string flag = output_flag_of(grid); !options.keep && !flag.empty()) {
    throw Error("each point would write a file, which goes with it")
        .at(grid.file, grid.lines.at(flag))
        .field(flag)
        .hint("--keep-files keeps it in points/NUMBER of the sweep's folder; else leave it out");
  }
  return grid;
}

ExitCode coordinate(const SweepOptions& options, SweepRunner& runner,
                    const LaunchedRank& launched) {
  // Before anything can go wrong: the others wait for us to join them.
  const JoinedCrew crew(launched);
  const Grid grid = read_grid(options);
  if (options.list) {
    print_lines(grid, options);
    return ExitCode::kDone;
  }
  check_report_flags(options.report);
  make_folder(options.output);
  const std::string path = options.output + "/journal.jsonl";
  const SweepIdentity identity = identity_of(grid, options.output);
  SweepJournal journal(path, identity, grid.size(), options.restart);
  crew.tell(letter_of_question(identity, options.output, options.keep));
  if (journal.damaged() > 0) {
    warn(fmt::format("{}: {} damaged lines are computed again", path, journal.damaged()));
  }
  std::vector<std::int64_t> points;
  std::int64_t without_files = 0;
  for (std::int64_t point = 0; point < grid.size(); ++point) {
    const auto row = journal.rows().find(point);
    if (row == journal.rows().end() || (options.retry && row->second.ending != Ending::kDone)) {
      points.push_back(point);
    } else if (options.keep && ended_well(row->second) &&
               !has_kept_files(sweep_task(grid, point, options.output, options.keep),
                               row->second)) {
      points.push_back(point);
      ++without_files;
    }
  }
  if (without_files > 0) {
    warn(fmt::format("{}/points: files of {} points are not there: they are computed again",
                     options.output, without_files));
  }
  TableFiles files(grid, options.output);
  const auto total = static_cast<std::int64_t>(points.size());
  std::int64_t computed = 0;
  OutputWarning outputs(grid, journal);
  const StopSignal stop;
  Progress progress("sweeping", total);
  SweepCoordinator coordinator(grid, runner, crew.get(), journal, [&](std::int64_t point) {
    return sweep_task(grid, point, options.output, options.keep);
  });
  const bool complete = coordinator.run(std::move(points), [&](std::int64_t done) {
    computed = done;
    progress.update(done);
    outputs.look();
    files.write_if_due(journal.rows());
    return !stop.requested();
  });
  outputs.look();
  const ColumnTable table = files.write(journal.rows());
  print_summary(options, grid, journal, computed, files, table);
  if (!complete) {
    fmt::print(standard_error(), "lockstep: stopped; the same command goes on\n");
    return ExitCode::kCheckFailed;
  }
  if (std::ranges::none_of(journal.rows(),
                           [](const auto& row) { return ended_well(row.second); })) {
    const SweepRow& first = journal.rows().begin()->second;
    fmt::print(standard_error(), "lockstep: no point is done; point {}: {}\n", first.point,
               first.reason);
    return ExitCode::kCheckFailed;
  }
  return ExitCode::kDone;
}

}  // namespace

ExitCode run_sweep(const SweepOptions& options) {
  LaunchedRank launched = launched_rank();
  if (options.list && launched.rank == 0) {
    launched.size = 1;
  }
  SweepRunner runner(launched.rank);
  if (launched.rank == 0) {
    return coordinate(options, runner, launched);
  }
  if (!options.list) {
    const std::unique_ptr<Crew> crew = join_crew(launched);
    bool told = false;
    {
      const StopSignal stop;  // the coordinator decides
      told = work(
          runner, *crew, [&] { return stop.requested(); }, std::chrono::seconds(5));
    }
    if (!told) {
      std::raise(SIGTERM);  // to leave MPI would wait for the others
    }
  }
  return ExitCode::kDone;
}

}  // namespace lockstep
