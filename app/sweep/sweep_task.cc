#include "app/sweep/sweep_task.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_number.h"

namespace lockstep {

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
  nursery_.start(task_.command);
}

SweepRow SweepRunner::finish() {
  SweepRow row = make_row(task_.point, nursery_.finish(), task_.outputs);
  row.rank = rank_;
  if (!task_.files.empty() && !task_.keep) {
    std::error_code ignored;
    std::filesystem::remove_all(task_.files, ignored);
  }
  return row;
}

}  // namespace lockstep
