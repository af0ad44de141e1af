// PyTorch's profiler (Kineto), and other files in the Trace Event format: what the GPU did. Kernels
// of NCCL and RCCL are communication, with size, group and type where PyTorch 2.2 or later wrote
// them. In files that are not PyTorch's, such as our own timelines, a process is a rank.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/rank_in_name.h"
#include "trace/trace_events.h"

namespace lockstep {
namespace {

bool sniff(std::string_view head, std::string_view) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    return false;
  }
  if (head[first] == '{') {
    return head.find("\"traceEvents\"") != std::string_view::npos ||
           (head.find("\"deviceProperties\"") != std::string_view::npos &&
            head.find("\"schemaVersion\"") != std::string_view::npos);
  }
  return head[first] == '[' && head.find("\"ph\"") != std::string_view::npos;
}

/// Bytes of an element by PyTorch's word for its type; 0: unknown.
std::int64_t element_bytes(std::string_view dtype) {
  const std::string type = to_lower(dtype);
  const auto has = [&](const char* word) { return type.find(word) != std::string::npos; };
  if (has("bfloat16") || has("half") || has("float16") || has("short")) {
    return 2;
  }
  if (has("double") || has("long") || has("int64") || has("float64")) {
    return 8;
  }
  if (has("byte") || has("char") || has("int8") || has("bool") || has("float8")) {
    return 1;
  }
  return has("float") || has("int") ? 4 : 0;
}

class Reader {
 public:
  explicit Reader(PhysicalLog& log) : log_(log), names_(log.names), groups_(log.groups) {}

  void run(std::string_view text) {
    const std::string around = around_trace_events(text);
    pytorch_ = around.find("\"schemaVersion\"") != std::string::npos ||
               around.find("\"deviceProperties\"") != std::string::npos;
    rank_ = static_cast<std::int32_t>(number_of_key(around, "rank"));
    if (rank_ < 0) {
      rank_ = std::max(0, rank_in_name(log_.file));
    }
    for (const char* key : {"world_size", "nccl_version", "traceName"}) {
      if (const std::string_view value = text_of_key(around, key); !value.empty()) {
        log_.facts.emplace(key, value);
      }
    }
    const std::size_t device = around.find("\"deviceProperties\"");
    if (device != std::string::npos) {
      log_.facts.emplace("gpu", text_of_key(std::string_view(around).substr(device), "name"));
    }
    const std::size_t events =
        each_trace_event(text, log_.warnings, [this](const TraceEvent& event) { take(event); });
    if (events == 0) {
      throw Error("there are no events").expected("the Trace Event format");
    }
    log_.facts.emplace("events", std::to_string(events));
    if (log_.ops.empty()) {
      log_.warnings.add("nothing of a GPU was recorded");
    }
    from_zero();
    add_collectives();
  }

 private:
  /// Communications whose size and group are known are measured collectives, waiting included.
  void add_collectives() {
    for (const OpRow& op : log_.ops) {
      if (op.op == CommType::kNone || op.bytes <= 0 || op.group_size < 2 || op.duration_s <= 0) {
        continue;
      }
      if (log_.settings.empty()) {
        CommSetting setting;
        setting.id = log_.file.substr(log_.file.rfind('/') + 1);
        setting.program = "Kineto";
        setting.gpu_type = log_.facts["gpu"];
        setting.nccl_version = log_.facts["nccl_version"];
        setting.ranks = static_cast<std::int32_t>(
            std::clamp<std::int64_t>(to_int(log_.facts["world_size"]).value_or(0), 0, 1 << 24));
        log_.settings.push_back(std::move(setting));
      }
      CommRow row;
      row.op = op.op;
      row.name = op.name;
      row.ranks = op.group_size;
      row.group = op.group;
      row.bytes = Bytes(op.bytes);
      row.time_s = op.duration_s;
      log_.comms.push_back(row);
    }
  }

  void take(const TraceEvent& event) {
    if (event.ph != "X" || event.dur_us < 0 || !std::isfinite(event.ts_us) ||
        !std::isfinite(event.dur_us)) {
      return;
    }
    if (event.name.starts_with("ProfilerStep#") && event.cat != "gpu_user_annotation") {
      log_.steps.push_back({to_int(event.name.substr(13)).value_or(0), -1, event.dur_us * 1e-6});
      return;
    }
    OpRow row;
    const bool copy = event.cat == "gpu_memcpy" || event.cat == "gpu_memset" ||
                      event.cat == "Memcpy" || event.cat == "Memset";
    const bool kernel =
        event.cat == "kernel" || event.cat == "Kernel" || event.cat == "concurrent_kernel";
    if (pytorch_ && !copy && !kernel) {
      return;
    }
    row.kind = copy ? OpKind::kCopy : OpKind::kCompute;
    row.rank = pytorch_ ? rank_ : rank_of(event);
    row.stream = static_cast<std::int32_t>(std::clamp<std::int64_t>(
        event.stream >= 0 ? event.stream : to_int(event.tid).value_or(0), 0, 1 << 30));
    row.begin_s = event.ts_us * 1e-6;
    row.duration_s = event.dur_us * 1e-6;
    row.name = names_.index(event.name.substr(0, 200));
    const CommType kind =
        pytorch_ ? CommType::kNone : comm_type_named(event.cat).value_or(CommType::kNone);
    if (kernel || !pytorch_) {
      if (event.name.starts_with("nccl") ||
          event.name.find("ncclDevKernel") != std::string_view::npos ||
          event.name.find("ncclKernel") != std::string_view::npos ||
          event.name.find("rccl") != std::string_view::npos) {
        row.kind = OpKind::kCommunication;
        row.op = comm_type_in(event.collective.empty() ? event.name : event.collective);
        if (row.op == CommType::kNone) {
          row.op = comm_type_in(event.name);
        }
      } else if (kind != CommType::kNone) {
        row.kind = OpKind::kCommunication;
        row.op = kind;
      }
    }
    if (row.kind == OpKind::kCommunication) {
      take_size(event, row);
    }
    log_.ops.push_back(row);
  }

  void take_size(const TraceEvent& event, OpRow& row) {
    if (!event.group.empty()) {
      row.group = groups_.index(event.group);
    }
    row.group_size =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(event.group_size, 0, 1 << 24));
    const bool gathers = row.op == CommType::kAllGather;
    const std::int64_t elements = gathers ? event.out_elements : event.in_elements;
    const std::int64_t each = element_bytes(event.dtype);
    if (event.bytes >= 0) {
      row.bytes = event.bytes;
    } else if (elements >= 0 && each > 0 && elements < (std::int64_t{1} << 50)) {
      row.bytes = elements * each;
    }
  }

  /// A rank is a process of the file: its number, else the how-manieth name of a process it is.
  std::int32_t rank_of(const TraceEvent& event) {
    const auto number = to_int(event.pid);
    if (number && *number >= 0 && *number < (1 << 24)) {
      return static_cast<std::int32_t>(*number);
    }
    const auto found = std::ranges::find(processes_, event.pid);
    if (found != processes_.end()) {
      return static_cast<std::int32_t>(found - processes_.begin());
    }
    processes_.emplace_back(event.pid);
    return static_cast<std::int32_t>(processes_.size()) - 1;
  }

  /// Times from the first event on: microseconds since 1970 would not fit well into a double. The
  /// beginning itself stands in the facts, so that files of one host can be laid side by side.
  void from_zero() {
    if (log_.ops.empty()) {
      return;
    }
    double first = log_.ops.front().begin_s;
    for (const OpRow& row : log_.ops) {
      first = std::min(first, row.begin_s);
    }
    for (OpRow& row : log_.ops) {
      row.begin_s -= first;
    }
    log_.facts["begin_s"] = fmt::format("{:.6f}", first);
    std::ranges::stable_sort(log_.ops, {}, &OpRow::begin_s);
  }

  PhysicalLog& log_;
  TextTable names_, groups_;
  bool pytorch_ = false;
  std::int32_t rank_ = 0;
  std::vector<std::string> processes_;
};

void read(std::string_view text, PhysicalLog& log) { Reader(log).run(text); }

}  // namespace

extern const LogReader kKinetoLogReader;
const LogReader kKinetoLogReader{"kineto", "traces of PyTorch's profiler, and Trace Events", sniff,
                                 read};

}  // namespace lockstep
