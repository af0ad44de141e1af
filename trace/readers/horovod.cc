// Horovod's timeline: a tensor is a process of the file; its phases are nested begin and end events
// (NEGOTIATE_ALLREDUCE, then ALLREDUCE with WAIT_FOR_DATA, MEMCPY_IN_FUSION_BUFFER, NCCL_ALLREDUCE
// … in it). The list is never closed while the job runs.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/rank_in_name.h"
#include "trace/trace_events.h"

namespace lockstep {
namespace {

bool sniff(std::string_view head, std::string_view) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (head[first] == '[' || head[first] == '{') &&
         head.find("\"ph\"") != std::string_view::npos &&
         (head.find("NEGOTIATE_") != std::string_view::npos ||
          head.find("start_time_since_epoch_in_micros") != std::string_view::npos);
}

/// What a phase is: communication proper, waiting (for the ranks, in their negotiation, for data),
/// or copying.
OpKind kind_of(std::string_view name) {
  if (name.starts_with("NEGOTIATE_") || name.starts_with("WAIT_") || name.starts_with("QUEUE")) {
    return OpKind::kWait;
  }
  return name.starts_with("MEMCPY") || name.starts_with("ALLOCATE") ? OpKind::kCopy
                                                                    : OpKind::kCommunication;
}

void read(std::string_view text, PhysicalLog& log) {
  struct Open {
    std::string name;
    double begin = 0;
    bool has_phases = false;  ///< its time is theirs
  };
  TextTable names(log.names), groups(log.groups);
  const std::int32_t rank = std::max(0, rank_in_name(log.file));
  std::map<std::string, std::string, std::less<>> tensors;
  std::map<std::string, std::vector<Open>, std::less<>> open;
  const auto add = [&](const std::string& pid, const std::string& phase, double begin, double end,
                       std::size_t depth, bool has_phases) {
    OpRow row;
    row.rank = rank;
    row.kind = has_phases ? OpKind::kWhole : kind_of(phase);
    row.op = comm_type_in(phase);
    const auto tensor = tensors.find(pid);
    row.name = names.index(phase + " " + (tensor == tensors.end() ? pid : tensor->second));
    row.group = groups.index(phase.substr(0, 100));
    row.stream = static_cast<std::int32_t>(depth);
    row.begin_s = begin * 1e-6;
    row.duration_s = std::max(0.0, end - begin) * 1e-6;
    log.ops.push_back(row);
  };
  const std::size_t events = each_trace_event(text, log.warnings, [&](const TraceEvent& event) {
    if (!std::isfinite(event.ts_us) || !std::isfinite(event.dur_us)) {
      return;
    }
    const std::string pid(event.pid.substr(0, 100));
    if (event.ph == "M") {
      if (event.name == "process_name" && !event.arg_name.empty()) {
        tensors[pid] = event.arg_name.substr(0, 200);
      }
    } else if (event.ph == "B") {
      auto& stack = open[pid];
      if (!stack.empty()) {
        stack.back().has_phases = true;
      }
      if (stack.size() < 64) {
        stack.push_back({std::string(event.name.substr(0, 100)), event.ts_us});
      }
    } else if (event.ph == "E") {
      auto& stack = open[pid];
      if (stack.empty()) {
        log.warnings.add("ends of phases that did not begin");
        return;
      }
      add(pid, stack.back().name, stack.back().begin, event.ts_us, stack.size() - 1,
          stack.back().has_phases);
      stack.pop_back();
    } else if (event.ph == "X" && event.dur_us > 0 && !to_int(event.name)) {
      auto& stack = open[pid];
      if (!stack.empty()) {
        stack.back().has_phases = true;
      }
      add(pid, std::string(event.name.substr(0, 100)), event.ts_us, event.ts_us + event.dur_us,
          stack.size(), false);
    }  // "X" of a rank's number: that rank is ready
  });
  if (events == 0) {
    throw Error("there are no events").expected("a Horovod timeline");
  }
  for (const auto& [pid, stack] : open) {
    for (std::size_t i = 0; i < stack.size(); ++i) {
      log.warnings.add("phases that did not end");
    }
  }
  std::ranges::stable_sort(log.ops, {}, &OpRow::begin_s);
  // Tensors that are fused have the phases of their common operation each.
  constexpr double kSlack = 1e-9;  // of rounding; times are whole microseconds
  std::map<OpKind, double> ends;
  for (const OpRow& op : log.ops) {
    const auto [end, first] = ends.try_emplace(op.kind, op.begin_s + op.duration_s);
    if (!first && op.kind != OpKind::kWhole && op.begin_s + kSlack < end->second) {
      log.warnings.add(
          "phases of tensors at the same time, such as of fused ones, count once each");
    }
    end->second = std::max(end->second, op.begin_s + op.duration_s);
  }
}

}  // namespace

extern const LogReader kHorovodLogReader;
const LogReader kHorovodLogReader{"horovod", "Horovod's timeline", sniff, read};

}  // namespace lockstep
