// PyTorch's profiler (Kineto), and other files in the Trace Event format: what the GPU did. Kernels
// of NCCL and RCCL are communication, with size, group and type where PyTorch 2.2 or later wrote
// them, or where the calls that launched them have shapes. In files that are not PyTorch's, such as
// our own timelines, a process is a rank.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "trace/host_calls.h"
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

/// Where an arrow of the file begins or ends.
struct ArrowEnd {
  std::int32_t rank = -1, stream = -1;
  double at_s = 0;
};

using Place = std::tuple<std::int32_t, std::int32_t, double>;
Place place_of(const OpRow* op) { return {op->rank, op->stream, op->begin_s}; }

/// The ranks of "[0, 8, 16]" in their order. Of long lists PyTorch writes the beginning, and in
/// some releases the end: "[0, 8, 16, ...]", "[0, 8, ..., 504]". What stands there goes on as it
/// begins, `size` ranks in all (0: not told), where all of it is equally far apart and the world
/// (0: not told) has room for them; else nothing, as where a list is empty. O(ranks).
std::vector<std::int32_t> listed_ranks(std::string_view text, std::int32_t size,
                                       std::int64_t world) {
  constexpr std::int64_t kMostLeftOut = 1 << 18;  // a longer list would be nonsense, and memory
  std::vector<std::int32_t> ranks;
  std::size_t before = 0;  // the gap
  bool cut = false;
  text.remove_prefix(text.starts_with('[') ? 1 : 0);
  for (std::string_view word : split(text.substr(0, text.find(']')), ',')) {
    word = trim(word);
    if (word == "...") {
      before = ranks.size();
      cut = true;
    } else if (const auto rank = to_int(word); rank && *rank >= 0 && *rank < (1 << 24)) {
      ranks.push_back(static_cast<std::int32_t>(*rank));
    }
  }
  if (!cut) {
    return ranks;
  }
  if (before < 2 || ranks[1] <= ranks[0]) {
    return {};
  }
  const std::int64_t apart = ranks[1] - ranks[0];
  const std::int64_t count =
      ranks.size() > before ? (ranks.back() - ranks[0]) / apart + 1 : std::int64_t{size};
  const std::int64_t last = ranks[0] + (count - 1) * apart;
  if ((size > 0 && count != size) || count < std::ssize(ranks) || count > kMostLeftOut ||
      last >= (1 << 24) || (world > 0 && last >= world)) {
    return {};
  }
  std::vector<std::int32_t> all;
  for (std::int64_t rank = ranks[0]; rank <= last; rank += apart) {
    all.push_back(static_cast<std::int32_t>(rank));
  }
  const auto behind = static_cast<std::ptrdiff_t>(ranks.size() - before);
  const bool agrees =
      std::equal(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(before), all.begin()) &&
      std::equal(ranks.end() - behind, ranks.end(), all.end() - behind);
  return agrees ? all : std::vector<std::int32_t>{};
}

bool is_copy(const TraceEvent& event) {
  return event.cat == "gpu_memcpy" || event.cat == "gpu_memset" || event.cat == "Memcpy" ||
         event.cat == "Memset";
}

bool is_kernel(const TraceEvent& event) {
  return event.cat == "kernel" || event.cat == "Kernel" || event.cat == "concurrent_kernel";
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
    for (const char* key : {"world_size", "nccl_version", "traceName", "baseTimeNanoseconds"}) {
      if (const std::string_view value = text_of_key(around, key); !value.empty()) {
        log_.facts.emplace(key, value);
      }
    }
    const std::size_t device = around.find("\"deviceProperties\"");
    if (device != std::string::npos) {
      log_.facts.emplace("gpu", text_of_key(std::string_view(around).substr(device), "name"));
    }
    world_size_ = number_of_key(around, "world_size");
    const std::size_t events =
        each_trace_event(text, log_.warnings, [this](const TraceEvent& event) { take(event); });
    if (events == 0) {
      throw Error("there are no events").expected("the Trace Event format");
    }
    log_.facts.emplace("events", std::to_string(events));
    if (log_.ops.empty()) {
      log_.warnings.add("nothing of a GPU was recorded");
    }
    take_calls();
    place_in_steps();
    name_groups();
    join_by_arrows();
    from_zero();
    add_collectives();
  }

 private:
  /// Communications whose size and group are known are measured collectives, waiting included.
  void add_collectives() {
    std::int64_t untold = 0;
    for (std::size_t i = 0; i < log_.ops.size(); ++i) {
      const OpRow& op = log_.ops[i];
      const std::string& name = log_.names[static_cast<std::size_t>(op.name)];
      const bool known = op.op != CommType::kNone ||
                         (op.kind == OpKind::kCommunication && !pattern_in(name).empty());
      if (!known || op.bytes <= 0 || op.group_size < 2 || op.duration_s <= 0) {
        untold += op.kind == OpKind::kCommunication && op.group_size != 1 ? 1 : 0;
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
      if (log_.facts["world_size"].empty()) {  // as many as the groups tell
        std::int32_t& ranks = log_.settings.front().ranks;
        for (const std::int32_t rank : members_of(log_, op.group)) {
          ranks = std::max(ranks, rank + 1);
        }
        ranks = std::max(ranks, op.group_size);
        log_.settings.front().ranks_guessed = true;
      }
      row.bytes = Bytes(op.bytes);
      row.time_s = op.duration_s;
      row.waits = true;
      row.op_row = static_cast<std::int64_t>(i);
      log_.comms.push_back(row);
    }
    for (std::int64_t i = 0; i < untold && !log_.comms.empty(); ++i) {
      log_.warnings.add(
          "communications that do not tell their operation, size, type or group are not compared");
    }
  }

  void take(const TraceEvent& event) {
    if (!pytorch_ && (event.ph == "M" || event.ph == "s" || event.ph == "f")) {
      take_mark(event);
      return;
    }
    if (event.ph != "X") {
      return;
    }
    const bool dated = std::isfinite(event.ts_us) && std::isfinite(event.dur_us);
    if (!dated || event.dur_us < 0) {
      if (!pytorch_ || is_kernel(event) || is_copy(event)) {
        log_.warnings.add("operations of a GPU without a begin or a duration were left out");
      }
      return;
    }
    if (event.name.starts_with("ProfilerStep#")) {
      const std::int64_t step = to_int(event.name.substr(13)).value_or(0);
      const bool of_gpu = event.cat == "gpu_user_annotation";
      (of_gpu ? gpu_steps_ : host_steps_)
          .push_back({event.ts_us, event.ts_us + event.dur_us, step});
      if (!of_gpu) {
        log_.steps.push_back({step, -1, event.dur_us * 1e-6});
      }
      return;
    }
    OpRow row;
    const bool copy = is_copy(event), kernel = is_kernel(event);
    if (pytorch_ && !copy && !kernel) {
      calls_.take(event);
      return;
    }
    row.kind = copy ? OpKind::kCopy : OpKind::kCompute;
    // The two processes of PyTorch's profiler before Kineto.
    const bool of_host = event.pid == "CPU functions";
    row.rank = pytorch_ || of_host || event.pid == "CUDA functions" ? rank_ : rank_of(event);
    row.stream = static_cast<std::int32_t>(std::clamp<std::int64_t>(
        event.stream >= 0 ? event.stream : to_int(event.tid).value_or(0), 0, 1 << 30));
    row.begin_s = event.ts_us * 1e-6;
    row.duration_s = event.dur_us * 1e-6;
    row.name = names_.index(event.name.substr(0, 200));
    const CommType kind =
        pytorch_ ? CommType::kNone : comm_type_named(event.cat).value_or(CommType::kNone);
    if (kernel || !pytorch_) {
      if (event.name.starts_with("nccl") || !event.collective.empty() ||
          event.name.find("ncclDevKernel") != std::string_view::npos ||
          event.name.find("ncclKernel") != std::string_view::npos ||
          event.name.find("rccl") != std::string_view::npos) {
        row.kind = OpKind::kCommunication;
        row.op = comm_type_in(event.collective.empty() ? event.name : event.collective);
        if (row.op == CommType::kNone) {
          row.op = comm_type_in(event.name);
        }
        name_pattern(row, pattern_in(event.collective));
      } else if (kind != CommType::kNone) {
        row.kind = OpKind::kCommunication;
        row.op = kind;
      }
    }
    if (of_host) {
      row.kind = OpKind::kHost;
    } else if (row.kind == OpKind::kCompute && is_copy_kernel(event.name)) {
      row.kind = OpKind::kCopy;
    }
    if (row.kind == OpKind::kCommunication) {
      take_size(event, row);
      if (pytorch_ && event.correlation >= 0 && (row.bytes < 0 || row.group_size == 0)) {
        asked_.emplace_back(log_.ops.size(), event.correlation);
      }
    }
    log_.ops.push_back(row);
    correlations_.push_back(event.correlation);
  }

  /// What was launched in a step is of it, whenever the GPU came to it; what has no launch in the
  /// file, of the GPU's own step, where it has them, else of the host's at its beginning. Steps of
  /// nothing, such as one that profiling ended in, are none.
  void place_in_steps() {
    std::ranges::stable_sort(host_steps_, {}, &Step::begin_us);
    std::ranges::stable_sort(gpu_steps_, {}, &Step::begin_us);
    const auto step_at = [](const std::vector<Step>& steps, double at_us) {
      const auto after = std::ranges::upper_bound(steps, at_us, {}, &Step::begin_us);
      const bool within = after != steps.begin() && at_us < std::prev(after)->end_us;
      return within ? std::prev(after)->number : std::int64_t{-1};
    };
    std::set<std::int64_t> filled;
    for (std::size_t i = 0; i < log_.ops.size() && !host_steps_.empty(); ++i) {
      OpRow& op = log_.ops[i];
      const auto launched = calls_.launched_at(correlations_[i]);
      op.step = launched             ? step_at(host_steps_, *launched)
                : gpu_steps_.empty() ? step_at(host_steps_, op.begin_s * 1e6)
                                     : step_at(gpu_steps_, op.begin_s * 1e6);
      filled.insert(op.step);
    }
    filled.erase(-1);
    if (filled.empty()) {
      return;
    }
    for (const StepRow& step : log_.steps) {
      if (!filled.contains(step.step)) {
        log_.warnings.add("steps in which the GPU was given nothing to do were left out");
      }
    }
    std::erase_if(log_.steps, [&](const StepRow& step) { return !filled.contains(step.step); });
  }

  /// Kernels that do not say what they do: what the calls behind them asked for. In a world of two
  /// every group has two ranks.
  void take_calls() {
    for (const auto& [index, correlation] : asked_) {
      OpRow& op = log_.ops[index];
      const auto asked = calls_.behind(correlation);
      if (!asked) {
        continue;
      }
      if (asked->op != CommType::kNone) {
        op.op = asked->op;
      }
      name_pattern(op, asked->pattern);
      if (op.group_size == 0) {
        op.group_size = asked->ranks > 0 ? asked->ranks : world_size_ == 2 ? 2 : 0;
      }
      if (op.bytes >= 0 || asked->bytes < 0) {
        continue;
      }
      // What one rank puts in is a part of what is gathered, and all of what the others do; of a
      // scatter only the root puts something in.
      const bool gathers = op.op == CommType::kAllGather || asked->pattern == "gather";
      if (!gathers) {
        op.bytes = asked->pattern.empty() ? asked->bytes : -1;
      } else if (op.group_size > 0 && asked->bytes < (std::int64_t{1} << 50) / op.group_size) {
        op.bytes = asked->bytes * op.group_size;
      }
    }
  }

  /// NCCL carries gathers and scatters out as send/receives; they are called what was asked for.
  void name_pattern(OpRow& row, std::string_view pattern) {
    if (!pattern.empty()) {
      row.op = CommType::kNone;
      row.name = names_.index(pattern);
    }
  }

  void take_size(const TraceEvent& event, OpRow& row) {
    row.group_size =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(event.group_size, 0, 1 << 24));
    if (!event.group.empty() || !event.group_ranks.empty()) {
      row.group = group_of(event.group, event.group_ranks, row.group_size);
    }
    const bool gathers = row.op == CommType::kAllGather;
    std::int64_t elements = gathers ? event.out_elements : event.in_elements;
    // Sizes are of the whole, of which each rank gives or gets a part.
    const std::string_view pattern = pattern_in(event.collective);
    if (!pattern.empty()) {
      const std::int64_t part = pattern == "gather" ? event.in_elements : event.out_elements;
      const std::int64_t most = row.group_size > 0 ? (std::int64_t{1} << 50) / row.group_size : 0;
      elements = part >= 0 && part < most ? part * row.group_size : -1;
    }
    const std::int64_t each = element_bytes(event.dtype);
    if (event.bytes >= 0) {
      row.bytes = event.bytes;
    } else if (elements >= 0 && each > 0 && elements < (std::int64_t{1} << 50)) {
      row.bytes = elements * each;
    }
  }

  /// Groups of one name and other ranks are others.
  std::int32_t group_of(std::string_view name, std::string_view ranks, std::int32_t size) {
    std::string text(name.substr(0, 100));
    if (!ranks.empty()) {
      text += (text.empty() ? "" : " ") + std::string(ranks.substr(0, 4000));
    }
    const std::size_t known = log_.groups.size();
    const std::int32_t group = groups_.index(text);
    log_.members.resize(log_.groups.size());
    if (log_.groups.size() > known) {
      constexpr std::size_t kMostMembers = 1 << 22;  // of all groups; more would be nonsense
      std::vector<std::int32_t> members = listed_ranks(ranks, size, world_size_);
      if (listed_ + members.size() <= kMostMembers) {
        listed_ += members.size();
        log_.members.back() = std::move(members);
      }
      if (log_.members.back().empty() && ranks.find("...") != std::string_view::npos) {
        log_.warnings.add(
            "groups whose list of ranks is cut, and does not tell how it goes on, are taken to be "
            "on as few servers as hold them");
      }
    }
    return group;
  }

  /// Names of threads, and arrows: our own timelines draw one from the rank that came last into a
  /// collective to each of the others, and from a message's sender to its receiver.
  void take_mark(const TraceEvent& event) {
    const auto tid = to_int(event.tid);
    if (!tid || *tid < 0 || *tid > (1 << 30)) {
      return;
    }
    const auto stream = static_cast<std::int32_t>(*tid);
    if (event.ph == "M") {
      if (event.name == "thread_name" && !event.arg_name.empty() && threads_.size() < (1U << 20)) {
        threads_[{rank_of(event), stream}] = event.arg_name.substr(0, 100);
      }
    } else if (!event.id.empty() && std::isfinite(event.ts_us)) {
      auto& ends = event.ph == "s" ? arrows_[std::string(event.id)].first
                                   : arrows_[std::string(event.id)].second;
      ends = {rank_of(event), stream, event.ts_us * 1e-6};
    }
  }

  /// Communication without a group is of that which its thread is named after ("tp", "dp").
  void name_groups() {
    for (OpRow& op : log_.ops) {
      const auto thread = op.kind == OpKind::kCommunication && op.group < 0
                              ? threads_.find({op.rank, op.stream})
                              : threads_.end();
      if (thread != threads_.end()) {
        op.group = groups_.index(thread->second);
      }
    }
  }

  /// The operation that an arrow's end lies on; null: none.
  OpRow* at(const ArrowEnd& end) {
    if (order_.empty()) {
      for (OpRow& op : log_.ops) {
        order_.push_back(&op);
      }
      std::ranges::stable_sort(order_, {}, place_of);
    }
    constexpr double kSlack = 0.5e-9;  // times are written to the picosecond, in microseconds
    const auto after = std::ranges::upper_bound(
        order_, Place(end.rank, end.stream, end.at_s + kSlack), {}, place_of);
    if (after == order_.begin()) {
      return nullptr;
    }
    OpRow* op = *std::prev(after);
    return op->rank == end.rank && op->stream == end.stream &&
                   end.at_s <= op->begin_s + op->duration_s + kSlack
               ? op
               : nullptr;
  }

  void join_by_arrows() {
    for (const auto& [id, arrow] : arrows_) {
      OpRow* from = at(arrow.first);
      OpRow* to = at(arrow.second);
      if (from == nullptr || to == nullptr || from->kind != OpKind::kCommunication ||
          to->kind != OpKind::kCommunication) {
        continue;
      }
      if (from->occurrence < 0) {
        from->occurrence = to->occurrence >= 0 ? to->occurrence : occurrences_++;
      }
      to->occurrence = from->occurrence;
    }
    order_.clear();
  }

  /// A rank is a process of the file: its number, else the how-manieth name of a process it is.
  std::int32_t rank_of(const TraceEvent& event) {
    const auto number = to_int(event.pid);
    if (number && *number >= 0 && *number < (1 << 24)) {
      return static_cast<std::int32_t>(*number);
    }
    return processes_.index(event.pid);
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
  std::int64_t world_size_ = 0;  // 0 or below: not told
  std::vector<std::string> process_names_;
  TextTable processes_{process_names_};
  std::map<std::pair<std::int32_t, std::int32_t>, std::string> threads_;  // by rank and stream
  std::map<std::string, std::pair<ArrowEnd, ArrowEnd>> arrows_;           // by id
  std::vector<OpRow*> order_;
  struct Step {
    double begin_us = 0, end_us = 0;
    std::int64_t number = 0;
  };
  std::vector<Step> host_steps_, gpu_steps_;
  std::vector<std::int64_t> correlations_;  // of log_.ops
  HostCalls calls_;
  std::vector<std::pair<std::size_t, std::int64_t>> asked_;  // index into ops, its correlation
  std::int64_t occurrences_ = 0;
  std::size_t listed_ = 0;  // ranks of all groups
};

void read(std::string_view text, PhysicalLog& log) { Reader(log).run(text); }

}  // namespace

extern const LogReader kKinetoLogReader;
const LogReader kKinetoLogReader{"kineto", "traces of PyTorch's profiler, and Trace Events", sniff,
                                 read};

}  // namespace lockstep
