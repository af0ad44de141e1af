#include "app/sweep/sweep_task.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_number.h"

namespace lockstep {
namespace {

/// Files below a folder, sorted. What cannot be looked at is left out.
std::vector<std::string> files_below(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code problem;
  for (fs::recursive_directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) {
      files.push_back(at->path().lexically_relative(folder).string());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

SweepTask sweep_task(const Grid& grid, std::int64_t point, const std::string& output, bool keep) {
  SweepTask task{.point = point, .command = {}, .outputs = grid.outputs, .files = {}, .keep = keep};
  if (writes_files(grid, keep)) {
    task.files = fmt::format("{}/points/{}", output, point);
  }
  task.command = {.arguments = command_line(grid, grid.point(point), task.files, keep),
                  .folder = {},
                  .time_limit = grid.time_limit,
                  .memory_limit = grid.memory_limit};
  return task;
}

bool has_kept_files(const SweepTask& task, const SweepRow& row) {
  if (task.files.empty() || !task.keep) {
    return true;
  }
  if (!row.kept) {  // of a run without --keep-files, or before files were noted
    return !files_below(task.files).empty();
  }
  return std::ranges::all_of(*row.kept, [&](const std::string& name) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(task.files + "/" + name, ignored);
  });
}

std::string to_letter(const SweepTask& task) {
  return Json{{"point", task.point},
              {"arguments", task.command.arguments},
              {"time_ps", task.command.time_limit.count_ps()},
              {"memory", task.command.memory_limit.count()},
              {"outputs", task.outputs},
              {"files", task.files},
              {"keep", task.keep}}
      .dump();
}

SweepTask task_of_letter(std::string_view letter) {
  const Json json = Json::parse(letter);
  return {.point = whole_number(json.at("point")),
          .command = {.arguments = json.at("arguments").get<std::vector<std::string>>(),
                      .folder = {},
                      .time_limit = Time::ps(whole_number(json.at("time_ps"))),
                      .memory_limit = Bytes(whole_number(json.at("memory")))},
          .outputs = json.at("outputs").get<std::vector<std::string>>(),
          .files = json.at("files").get<std::string>(),
          .keep = json.at("keep").get<bool>()};
}

void SweepRunner::start(SweepTask task) {
  task_ = std::move(task);
  if (!task_.files.empty()) {
    std::error_code told_by_the_command;
    std::filesystem::create_directories(task_.files, told_by_the_command);
  }
  nursery_.start(task_.command);
}

SweepRow SweepRunner::finish() {
  SweepRow row = make_row(task_.point, nursery_.finish(), task_.outputs);
  row.rank = rank_;
  if (!task_.files.empty() && !task_.keep) {
    std::error_code ignored;
    std::filesystem::remove_all(task_.files, ignored);
  } else if (!task_.files.empty()) {
    row.kept = files_below(task_.files);
  }
  return row;
}

}  // namespace lockstep
