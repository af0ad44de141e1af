// MLPerf result logs: lines ":::MLLOG {…}" with a time in milliseconds since 1970. Steps are those
// that the log counts: "train_step_time" where a run tracks it, else blocks divided by their steps.
// Also the tables of step times that are taken from such logs: one column step_time_s.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/trace_events.h"

namespace lockstep {
namespace {

bool is_table(std::string_view head) {
  std::string_view line;
  return next_line(head, line) && trim(line) == "step_time_s";
}

bool sniff(std::string_view head, std::string_view) {
  return head.find(":::MLLOG ") != std::string_view::npos || is_table(head);
}

void read_table(std::string_view text, PhysicalLog& log) {
  std::string_view line;
  next_line(text, line);
  while (next_line(text, line)) {
    const auto time = to_double(trim(line));
    if (time && *time >= 0) {
      log.steps.push_back({static_cast<std::int64_t>(log.steps.size()), -1, *time});
    } else if (!trim(line).empty()) {
      log.warnings.add("lines that are no time");
    }
  }
}

double number_behind(std::string_view json, std::string_view key) {
  return to_double(text_of_key(json, key)).value_or(NAN);
}

void read_log_lines(std::string_view text, PhysicalLog& log) {
  TextTable groups(log.groups);
  std::string_view line;
  double block_begin = NAN;
  double samples_before = NAN;
  double batch = NAN;
  std::int32_t run = -1;
  std::vector<StepRow> blocks;
  while (next_line(text, line)) {
    const std::size_t mark = line.find(":::MLLOG ");
    if (mark == std::string_view::npos) {
      continue;
    }
    const std::string_view json = line.substr(mark + 9);
    const std::string_view key = text_of_key(json, "key");
    const double time = number_behind(json, "time_ms") * 1e-3;
    if (key.empty() || !std::isfinite(time)) {
      log.warnings.add("lines of MLLOG without a key or a time");
      continue;
    }
    if (key == "submission_benchmark" || key == "submission_org" || key == "submission_platform" ||
        key == "global_batch_size" || key == "max_sequence_length" || key == "tensor_parallel" ||
        key == "pipeline_parallel" || key == "context_parallel" || key == "micro_batch_size") {
      log.facts.emplace(key, text_of_key(json, "value").substr(0, 200));
    }
    if (key == "global_batch_size") {
      batch = number_behind(json, "value");
    }
    if (key == "run_start") {
      run = groups.index("run " + std::to_string(log.groups.size() + 1));
    }
    const double tracked = number_behind(json, "train_step_time");
    const double samples = number_behind(json, "samples_count");
    if (key == "tracked_stats" && std::isfinite(tracked) && tracked >= 0) {
      const double step = std::isfinite(number_behind(json, "step"))
                              ? number_behind(json, "step")
                              : static_cast<double>(log.steps.size());
      log.steps.push_back({static_cast<std::int64_t>(std::clamp(step, 0.0, 1e15)), run, tracked});
    } else if (key == "block_start") {
      block_begin = time;
      samples_before = samples;
    } else if (key == "block_stop" && time > block_begin) {
      const double done = std::isfinite(samples_before) ? samples - samples_before : samples;
      if (std::isfinite(done) && done > 0 && batch > 0) {
        blocks.push_back({static_cast<std::int64_t>(blocks.size()), run,
                          (time - block_begin) / std::max(1.0, done / batch)});
      }
      block_begin = NAN;
    }
  }
  std::set<std::int32_t> tracked;  // runs
  for (const StepRow& step : log.steps) {
    tracked.insert(step.run);
  }
  std::ranges::copy_if(blocks, std::back_inserter(log.steps),
                       [&](const StepRow& block) { return !tracked.contains(block.run); });
}

void read(std::string_view text, PhysicalLog& log) {
  if (is_table(text)) {
    read_table(text, log);
  } else {
    read_log_lines(text, log);
  }
  if (log.steps.empty()) {
    throw Error("the log counts no training steps")
        .expected("tracked_stats with train_step_time, or blocks with samples_count");
  }
}

}  // namespace

extern const LogReader kMlperfLogReader;
const LogReader kMlperfLogReader{"mlperf", "MLPerf result logs and their step times", sniff, read};

}  // namespace lockstep
