// Logs of Megatron-LM and its forks (Megatron-DeepSpeed, …): a line for each interval of
// iterations, and the timers behind it, where they are on (--timing-log-level),
//
//   iteration  20/ 500 | consumed samples: … | elapsed time per iteration (ms): 913.4 | … |
//   (min, max) time across ranks (ms):
//       forward-backward ...............................: (801.37, 802.02)
//
// with whatever a launcher writes before them. Times are means over the interval's iterations,
// without evaluation and checkpoints (training.py, training_log; timers.py). Older releases write
// "time (ms) | optimizer: 49.42 | …", BLOOM's seconds, ALCF's fork "iteration= 1/ 500 | … |
// elapsed_time_per_iteration_ms=913.4 |".
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

/// What the fields of a line are called, by fork.
struct Words {
  std::string_view iteration, elapsed, batch;
  double unit_s = 1e-3;
};
constexpr Words kMegatron{"iteration ", "elapsed time per iteration (ms):", "global batch size:"};
constexpr Words kBloom{"iteration ", "elapsed time per iteration (s):", "global batch size:", 1};
constexpr Words kAlcf{"iteration=", "elapsed_time_per_iteration_ms=", "global_batch_size="};
constexpr std::string_view kArguments =
    "------------------------ arguments ------------------------";

bool sniff(std::string_view head, std::string_view) {
  return head.find(kMegatron.elapsed) != std::string_view::npos ||
         head.find(kBloom.elapsed) != std::string_view::npos ||
         head.find(kAlcf.elapsed) != std::string_view::npos ||
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

/// The number of "iteration  20/ 500 |"; -1: there is none.
std::int64_t iteration_of(std::string_view line, std::string_view label) {
  for (std::size_t found = line.find(label); found != std::string_view::npos;
       found = line.find(label, found + 1)) {
    const std::string_view rest = trim(line.substr(found + label.size()));
    const std::size_t end = rest.find_first_not_of("0123456789");
    if (end != std::string_view::npos && rest[end] == '/') {
      return to_int(rest.substr(0, end)).value_or(-1);
    }
  }
  return -1;
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

class Reader {
 public:
  explicit Reader(PhysicalLog& log) : log_(log), runs_(log.groups), names_(log.names) {}

  void take(std::string_view line) {
    if (line.find(kArguments) != std::string_view::npos) {
      ++lists_;
      log_.facts.erase("max_allocated_MiB");  // of the start before
    } else if (line.find("memory (MB)") != std::string_view::npos) {
      take_memory(line, log_);
    } else if (const std::size_t timers = line.find("time (ms) |");
               timers != std::string_view::npos) {
      take_old_timers(line.substr(timers));
    } else if (!take_timer(line)) {
      take_iteration(line, line.find(kAlcf.iteration) != std::string_view::npos  ? kAlcf
                           : line.find(kBloom.elapsed) != std::string_view::npos ? kBloom
                                                                                 : kMegatron);
    }
  }

 private:
  void take_iteration(std::string_view line, const Words& words) {
    const std::int64_t iteration = iteration_of(line, words.iteration);
    if (iteration < 0 && line.find(words.elapsed) == std::string_view::npos) {
      return;
    }
    const std::string_view elapsed = field(line, words.elapsed).value_or("");
    const double time =  // AMD's Primus: "13100.0/13240.9", this one's and their mean
        to_double(trim(elapsed.substr(0, elapsed.find('/')))).value_or(-1);
    if (iteration < 0 || !(time > 0)) {
      log_.warnings.add("lines of iterations without a number or a time");
      return;
    }
    const std::string batch(field(line, words.batch).value_or(""));
    const std::string run =
        fmt::format("start {}{}", std::max<std::int64_t>(lists_, 1),
                    batch.empty() ? "" : fmt::format(", global batch {}", printable(batch)));
    log_.steps.push_back({iteration, runs_.index(run), time * words.unit_s});
  }

  /// "    forward-backward ....: (801.37, 802.02)", or the most alone.
  bool take_timer(std::string_view line) {
    const std::size_t dots = line.find(" ..");
    const std::size_t colon = line.find(".: ", std::min(dots, line.size()));
    if (dots == std::string_view::npos || colon == std::string_view::npos) {
      return false;
    }
    const std::string_view name = line.substr(0, dots);
    std::string_view most = trim(line.substr(colon + 3));
    if (most.starts_with('(') && most.ends_with(')')) {
      const std::size_t comma = most.find(',');
      most = trim(most.substr(std::min(comma, most.size() - 1) + 1));
      most.remove_suffix(1);
    }
    const double milliseconds = to_double(most).value_or(-1);
    if (milliseconds < 0) {
      return false;
    }
    add_part(name.substr(name.find_last_of(" :\t") + 1), milliseconds);
    return true;
  }

  /// "time (ms) | forward-compute: 53.79 | … | optimizer: 49.42"
  void take_old_timers(std::string_view line) {
    line.remove_prefix(std::min(line.find('|'), line.size()));
    while (line.size() > 1) {
      line.remove_prefix(1);
      const std::string_view one = line.substr(0, line.find('|'));
      line.remove_prefix(one.size());
      const std::size_t colon = one.find(": ");
      const double milliseconds =
          to_double(trim(one.substr(std::min(colon, one.size() - 1) + 1))).value_or(-1);
      if (colon != std::string_view::npos && milliseconds >= 0) {
        add_part(trim(one.substr(0, colon)), milliseconds);
      }
    }
  }

  /// Of the iteration whose line came last.
  void add_part(std::string_view name, double milliseconds) {
    if (!log_.steps.empty() && !name.empty()) {
      const StepRow& step = log_.steps.back();
      log_.parts.push_back({step.step, step.run, names_.index(name), milliseconds * 1e-3});
    }
  }

  PhysicalLog& log_;
  TextTable runs_, names_;
  std::int64_t lists_ = 0;
};

void read(std::string_view text, PhysicalLog& log) {
  Reader reader(log);
  std::string_view line;
  while (next_line(text, line)) {
    reader.take(line);
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
