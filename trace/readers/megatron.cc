// Logs of Megatron-LM and its forks (Megatron-DeepSpeed, …): a line for each interval of
// iterations,
//
//   iteration  20/ 500 | consumed samples: … | elapsed time per iteration (ms): 913.4 | … |
//
// with whatever a launcher writes before it. An interval's time is the mean over its iterations,
// without evaluation and checkpoints (training.py, training_log).
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"

namespace lockstep {
namespace {

constexpr std::string_view kElapsed = "elapsed time per iteration (ms):";
constexpr std::string_view kArguments =
    "------------------------ arguments ------------------------";

bool sniff(std::string_view head, std::string_view) {
  return head.find(kElapsed) != std::string_view::npos ||
         (head.find(kArguments) != std::string_view::npos &&
          head.find("world_size ....") != std::string_view::npos);
}

/// The text between a label and the next '|'; nothing where the label or the '|' is missing.
std::optional<std::string_view> field(std::string_view line, std::string_view label) {
  const std::size_t found = line.find(label);
  if (found == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = line.substr(found + label.size());
  const std::size_t bar = rest.find('|');
  if (bar == std::string_view::npos) {
    return std::nullopt;  // the line is cut
  }
  return trim(rest.substr(0, bar));
}

/// The number of "iteration  20/ 500 |".
std::optional<std::int64_t> iteration_of(std::string_view line) {
  constexpr std::string_view kLabel = "iteration ";
  for (std::size_t found = line.find(kLabel); found != std::string_view::npos;
       found = line.find(kLabel, found + 1)) {
    const std::string_view rest = trim(line.substr(found + kLabel.size()));
    const std::size_t end = rest.find_first_not_of("0123456789");
    if (end != std::string_view::npos && rest[end] == '/') {
      return to_int(rest.substr(0, end));
    }
  }
  return std::nullopt;
}

/// "[Rank 0] (after 10 iterations) memory (MB) | allocated: … | max allocated: 1464.3 | …"
void take_memory(std::string_view line, PhysicalLog& log) {
  const std::string most(field(line, "| max allocated:").value_or(""));
  const double held = to_double(most).value_or(-1);
  const auto known = log.facts.find("max_allocated_MiB");
  if (held >= 0 && (known == log.facts.end() || to_double(known->second).value_or(0) < held)) {
    log.facts.insert_or_assign("max_allocated_MiB", most);
  }
}

void read(std::string_view text, PhysicalLog& log) {
  TextTable runs(log.groups);
  std::string_view line;
  std::int64_t lists = 0;
  while (next_line(text, line)) {
    if (line.find(kArguments) != std::string_view::npos) {
      ++lists;
    }
    if (line.find("memory (MB)") != std::string_view::npos) {
      take_memory(line, log);
    }
    const std::int64_t iteration = iteration_of(line).value_or(-1);
    const bool elapses = line.find(kElapsed) != std::string_view::npos;
    if (iteration < 0 && !elapses) {
      continue;
    }
    const std::string_view elapsed = field(line, kElapsed).value_or("");
    const double milliseconds =  // AMD's Primus: "13100.0/13240.9", this one's and their mean
        to_double(trim(elapsed.substr(0, elapsed.find('/')))).value_or(-1);
    if (iteration < 0 || milliseconds < 0) {
      log.warnings.add("lines of iterations without a number or a time");
      continue;
    }
    const std::string batch(field(line, "global batch size:").value_or(""));
    const std::string run =
        fmt::format("start {}{}", std::max<std::int64_t>(lists, 1),
                    batch.empty() ? "" : fmt::format(", global batch {}", printable(batch)));
    log.steps.push_back({iteration, runs.index(run), milliseconds * 1e-3});
  }
  if (log.steps.empty()) {
    throw Error("the log has no line of an iteration")
        .expected("\"iteration N/ M | … | elapsed time per iteration (ms): … |\"")
        .hint("without them it still describes the job: lockstep simulate --from-megatron-args");
  }
}

}  // namespace

extern const LogReader kMegatronLogReader;
const LogReader kMegatronLogReader{"megatron", "training logs of Megatron-LM and its forks", sniff,
                                   read};

}  // namespace lockstep
