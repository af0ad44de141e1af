#include "app/sweep/run_sweep.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "app/program_identity.h"
#include "app/sweep/coordinator.h"
#include "app/sweep/sweep_table.h"
#include "app/sweep/worker.h"
#include "base/atomic_file.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/output_capture.h"
#include "base/progress.h"
#include "base/stop_signal.h"
#include "report/html/report_document.h"
#include "trace/read_trace.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The grid, the files that its flags name, and the program: if they are the same, so are the rows.
std::string identity_of(const Grid& grid, std::string_view text) {
  Digest digest;
  digest.add(text).add(program_identity());
  const auto add_files = [&](const FlagValue& value) {
    for (const std::string& word : value) {
      std::error_code ignored;
      if (fs::is_regular_file(word, ignored)) {
        digest.add(word).add(FileText(word).view());
      }
    }
  };
  for (const auto& [flag, value] : grid.flags) {
    add_files(value);
  }
  for (const GridAxis& axis : grid.axes) {
    for (const auto& place : axis.values) {
      std::ranges::for_each(place, add_files);
    }
  }
  return digest.hex();
}

/// The two files that people open, whole at any time: written anew under another name and renamed,
/// more seldom the longer that takes.
class TableFiles {
 public:
  TableFiles(const Grid& grid, const std::string& folder)
      : grid_(grid), csv_(folder + "/table.csv"), parquet_(folder + "/table.parquet") {}

  ColumnTable write(const std::map<std::int64_t, SweepRow>& rows) {
    const auto begin = Clock::now();
    ColumnTable table = sweep_table(grid_, rows);
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
  for (std::int64_t point = 0; point < grid.size(); ++point) {
    const SweepTask task = sweep_task(grid, point, options.output, options.keep);
    text += fmt::format("{}: lockstep {}\n", point, fmt::join(task.command.arguments, " "));
  }
  write_file("-", text);
}

using Endings = std::map<std::string_view, std::int64_t>;

/// The summary, and the table where it has at most kMostRows rows: others are read from its files.
Json summary_json(const Grid& grid, const ColumnTable& table, const Endings& endings,
                  std::int64_t rows, std::int64_t computed, const TableFiles& files) {
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
  if (rows <= kMostRows) {
    json["columns"] = columns_json(table);
  }
  return json;
}

void print_summary(const SweepOptions& options, const Grid& grid, const SweepJournal& journal,
                   std::int64_t computed, const TableFiles& files, const ColumnTable& table) {
  Endings endings;
  for (const auto& [point, row] : journal.rows()) {
    ++endings[to_text(row.ending)];
  }
  if (options.json || options.report.wanted()) {
    const Json json =
        summary_json(grid, table, endings, std::ssize(journal.rows()), computed, files);
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

ExitCode coordinate(const SweepOptions& options, SweepRunner& runner, int ranks) {
  constexpr Bytes kMostYaml(1 << 24);  // its tree takes 75 times as much
  const FileText text(options.grid, kMostYaml);
  const Grid grid = parse_grid(text.view(), options.grid);
  if (options.list) {
    print_lines(grid, options);
    return ExitCode::kDone;
  }
  check_report_flags(options.report);
  make_folder(options.output);
  const std::string path = options.output + "/journal.jsonl";
  if (options.restart) {
    fs::remove(path);
  }
  SweepJournal journal(path, identity_of(grid, text.view()), grid.size());
  if (journal.damaged() > 0) {
    fmt::print(standard_error(), "lockstep: warning: {}: {} damaged lines are computed again\n",
               path, journal.damaged());
  }
  std::vector<std::int64_t> points;
  for (std::int64_t point = 0; point < grid.size(); ++point) {
    const auto row = journal.rows().find(point);
    if (row == journal.rows().end() || (options.retry && row->second.ending != Ending::kDone)) {
      points.push_back(point);
    }
  }
  TableFiles files(grid, options.output);
  const auto total = static_cast<std::int64_t>(points.size());
  std::int64_t computed = 0;
  bool complete = true;
  ColumnTable table;
  const std::unique_ptr<Crew> crew = ranks > 1 ? join_crew() : nullptr;
  const auto dismiss = [&] {
    for (int rank = 1; crew != nullptr && rank < crew->size(); ++rank) {
      crew->send(rank, std::string(kStopLetter));
    }
  };
  try {
    const StopSignal stop;
    Progress progress("sweeping", total);
    SweepCoordinator coordinator(grid, runner, crew.get(), journal, [&](std::int64_t point) {
      return sweep_task(grid, point, options.output, options.keep);
    });
    complete = coordinator.run(std::move(points), [&](std::int64_t done) {
      computed = done;
      progress.update(done);
      files.write_if_due(journal.rows());
      return !stop.requested();
    });
    table = files.write(journal.rows());
  } catch (...) {
    dismiss();
    throw;
  }
  dismiss();
  print_summary(options, grid, journal, computed, files, table);
  if (!complete) {
    fmt::print(standard_error(), "lockstep: stopped; the same command goes on\n");
  }
  return complete ? ExitCode::kDone : ExitCode::kCheckFailed;
}

}  // namespace

ExitCode run_sweep(const SweepOptions& options) {
  const LaunchedRank launched = launched_rank();
  SweepRunner runner(launched.rank);  // forks: before MPI and before threads
  if (launched.rank == 0) {
    return coordinate(options, runner, options.list ? 1 : launched.size);
  }
  if (!options.list) {
    const StopSignal until_told;  // the coordinator decides
    const std::unique_ptr<Crew> crew = join_crew();
    work(runner, *crew);
  }
  return ExitCode::kDone;
}

}  // namespace lockstep
