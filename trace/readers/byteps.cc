// BytePS's comm.json: a total event for each tensor's communication, and its stages in the queues
// (PUSH, PULL, COPYD2H, …) for each partition of the tensor. One folder a local rank. The form is
// that of BytePSGlobal::EmitTrace and OutputTraces (byteps/common/global.cc): process
// "Comm.TENSOR", thread "total" or the partition's key; a tensor's totals of all steps come before
// its stages.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/trace_events.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 13> kQueues = {"COORDINATE_REDUCE",
                                                      "COORDINATE_PUSH",
                                                      "COORDINATE_BROADCAST",
                                                      "PCIE_REDUCE",
                                                      "COPYD2H",
                                                      "COPYH2D",
                                                      "DECOMPRESS",
                                                      "COMPRESS",
                                                      "BROADCAST",
                                                      "REDUCE",
                                                      "PUSH",
                                                      "PULL",
                                                      "GDR_WAIT_PUSH_PULL"};

/// The queue that a word ends in: "byteps.gradient_3.PUSH" or "PUSH"; empty: none.
std::string_view queue_of(std::string_view text) {
  for (const std::string_view queue : kQueues) {
    if (text == queue || (text.size() > queue.size() && text.ends_with(queue) &&
                          (text[text.size() - queue.size() - 1] == '.' ||
                           text[text.size() - queue.size() - 1] == '_'))) {
      return queue;
    }
  }
  return {};
}

bool sniff(std::string_view head, std::string_view file_name) {
  if (head.find("\"traceEvents\"") == std::string_view::npos) {
    return false;
  }
  const bool stages = head.find("PUSH\"") != std::string_view::npos ||
                      head.find("COPYD2H\"") != std::string_view::npos;
  const bool totals = head.find("\"total\"") != std::string_view::npos &&
                      head.find("\"Comm.") != std::string_view::npos;
  return totals ||
         (stages && (head.find("byteps") != std::string_view::npos ||
                     head.find("\"Comm") != std::string_view::npos ||
                     head.find("\"total\"") != std::string_view::npos || file_name == "comm.json"));
}

/// The rank that the folder of the file is named after: "…/3/comm.json", also in an archive.
std::int32_t rank_of(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().filename().string();
  const auto rank = to_int(folder.substr(folder.rfind(':') + 1));
  return rank && *rank >= 0 && *rank < (1 << 24) ? static_cast<std::int32_t>(*rank) : 0;
}

struct Total {
  double begin = 0, end = 0;
  std::size_t row = 0;  ///< of log.ops
  std::size_t stages = 0;
};

/// What a queue does: copies between host and GPU, arithmetic, waiting for the other ranks.
OpKind kind_of(std::string_view queue) {
  if (queue.starts_with("COPY")) {
    return OpKind::kCopy;
  }
  if (queue == "COMPRESS" || queue == "DECOMPRESS") {
    return OpKind::kHost;
  }
  return queue.starts_with("COORDINATE") || queue.starts_with("GDR_WAIT") ? OpKind::kWait
                                                                          : OpKind::kCommunication;
}

void read(std::string_view text, PhysicalLog& log) {
  TextTable names(log.names), groups(log.groups);
  const std::int32_t rank = rank_of(log.file);
  std::map<std::string, std::vector<Total>, std::less<>> totals;
  struct Stage {
    std::string tensor;
    OpRow row;
  };
  std::vector<Stage> stages;
  const std::size_t events = each_trace_event(text, log.warnings, [&](const TraceEvent& event) {
    if (event.ph != "X" || !(event.dur_us >= 0) || !std::isfinite(event.ts_us) ||
        !std::isfinite(event.dur_us)) {
      return;
    }
    OpRow row;
    row.rank = rank;
    row.kind = OpKind::kCommunication;
    row.begin_s = event.ts_us * 1e-6;
    row.duration_s = event.dur_us * 1e-6;
    row.bytes = event.bytes;
    std::string_view queue = queue_of(event.name);
    for (const std::string_view word : {event.tid, event.cat, event.arg_name}) {
      queue = queue.empty() ? queue_of(word) : queue;
    }
    std::string tensor(event.pid.empty() || to_int(event.pid) ? event.arg_name : event.pid);
    if (tensor.empty()) {
      tensor = event.name;
      if (!queue.empty() && tensor.size() > queue.size() && tensor.ends_with(queue)) {
        tensor.resize(tensor.size() - queue.size() - 1);
      }
    }
    if (queue.empty()) {  // the whole of a tensor
      row.op = CommType::kAllReduce;
      row.name = names.index(tensor.substr(0, 200));
      totals[tensor].push_back({row.begin_s, row.begin_s + row.duration_s, log.ops.size(), 0});
      log.ops.push_back(row);
      return;
    }
    row.name = names.index(tensor.substr(0, 160) + "." + std::string(queue));
    row.kind = kind_of(queue);
    row.group = groups.index(queue);
    row.stream = 1 + static_cast<std::int32_t>(
                         std::clamp<std::int64_t>(to_int(event.tid).value_or(0), 0, 1 << 30));
    stages.push_back({std::move(tensor), row});
  });
  if (events == 0) {
    throw Error("there are no events").expected("BytePS's comm.json");
  }
  // A stage belongs to the total of its tensor in whose time it lies.
  constexpr double kSlack = 2e-6;
  for (Stage& stage : stages) {
    Total* own = nullptr;
    for (Total& total : totals[stage.tensor]) {
      if (stage.row.begin_s >= total.begin - kSlack &&
          stage.row.begin_s + stage.row.duration_s <= total.end + kSlack) {
        own = &total;
        break;
      }
    }
    if (own == nullptr) {
      log.warnings.add("stages that lie in no total of their tensor");
    } else {
      ++own->stages;
      log.ops[own->row].kind = OpKind::kWhole;  // its time is that of its stages
    }
    log.ops.push_back(stage.row);
  }
  for (const auto& [tensor, list] : totals) {
    for (const Total& total : list) {
      if (total.stages == 0 && !stages.empty()) {
        log.warnings.add("totals without a stage");
      }
    }
  }
  double first = INFINITY;
  for (const OpRow& row : log.ops) {
    first = std::min(first, row.begin_s);
  }
  for (OpRow& row : log.ops) {
    row.begin_s -= first;
  }
  std::ranges::stable_sort(log.ops, {}, &OpRow::begin_s);
}

}  // namespace

extern const LogReader kBytepsLogReader;
const LogReader kBytepsLogReader{"byteps", "comm.json of BytePS", sniff, read};

}  // namespace lockstep
