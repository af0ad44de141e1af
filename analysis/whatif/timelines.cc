#include "analysis/whatif/timelines.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "analysis/whatif/numbers.h"

namespace lockstep::whatif {
namespace {

constexpr std::uint32_t kNoPlace = std::numeric_limits<std::uint32_t>::max();
constexpr std::array<const char*, 5> kLanes = {"compute", "pp-comm", "tp-comm", "dp-comm", "misc"};
constexpr std::int64_t kLanesPerRank = kLanes.size();

int lane_of(TraceOp type) {
  if (is_compute(type) || type == TraceOp::kOptimizer || type == TraceOp::kGc) {
    return 0;
  }
  return is_p2p(type) ? 1 : 3;
}

/// Collects text and hands it on in large parts.
class Text {
 public:
  explicit Text(const TextSink& sink) : sink_(sink) { out_.reserve(kPart + 4096); }
  std::string& out() { return out_; }
  void hand_on() {
    if (out_.size() >= kPart) {
      flush();
    }
  }
  void flush() {
    sink_(out_);
    out_.clear();
  }

 private:
  static constexpr std::size_t kPart = 1 << 18;
  const TextSink& sink_;
  std::string out_;
};

void append_whole(std::string& out, std::int64_t value) {
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
}

/// The parts of an event that its type, worker and step decide.
class EventWriter {
 public:
  EventWriter() {
    for (std::size_t t = 0; t < kTraceOpCount; ++t) {
      const std::string_view name = trace_op_names()[t];
      heads_[t] = fmt::format(R"({{"name":"{}","cat":"{}","pid":)", name, name);
    }
  }

  /// `times`: the text `"ts":…,"dur":…`; `ids`: `"model_chunk":…,"mb_id":…`.
  void write(std::string& out, const Trace& trace, std::size_t row, std::string_view times,
             std::string_view ids) {
    const TraceOp type = trace.optype[row];
    out += first_ ? '[' : ',';
    first_ = false;
    out += heads_[index(type)];
    append_whole(out, trace.dp_rank[row]);
    out += ",\"tid\":";
    append_whole(out, trace.rank[row] * kLanesPerRank + lane_of(type));
    out += ',';
    out += times;
    out += ",\"ph\":\"X\",\"args\":{\"step\":";
    append_whole(out, trace.step[row]);
    out += ',';
    out += ids;
    out += ",\"seq_id\":";
    append_whole(out, trace.seq_id[row]);
    out += "}}";
  }

 private:
  std::array<std::string, kTraceOpCount> heads_;
  bool first_ = true;
};

void append_times(std::string& out, double start, double duration) {
  out += "\"ts\":";
  append_python_float(out, start * 1e6);
  out += ",\"dur\":";
  append_python_float(out, duration * 1e6);
}

/// Names and order of the threads and processes, after all events.
void write_names(const OpTable& table, const Trace& trace, std::string& out) {
  // Ranks as the original's set iterates them, from the order of the rows.
  std::vector<std::int64_t> ranks;
  std::vector<std::int32_t> processes;
  std::set<std::int32_t> seen_ranks, seen_processes;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (table.place_of_row[i] == kNoPlace || (i > 0 && trace.rank[i] == trace.rank[i - 1])) {
      continue;
    }
    if (seen_ranks.insert(trace.rank[i]).second) {
      ranks.push_back(trace.rank[i]);
    }
    if (seen_processes.insert(trace.dp_rank[i]).second) {
      processes.push_back(trace.dp_rank[i]);
    }
    if (seen_ranks.size() == table.ranks.size()) {
      break;
    }
  }
  for (const std::int64_t rank : python_set_order(ranks)) {
    const auto worker = static_cast<std::size_t>(
        std::find(table.ranks.begin(), table.ranks.end(), rank) - table.ranks.begin());
    const std::size_t dp = static_cast<std::size_t>(table.dp);
    for (std::int64_t lane = 0; lane < kLanesPerRank; ++lane) {
      const std::int64_t tid = rank * kLanesPerRank + lane;
      fmt::format_to(
          std::back_inserter(out),
          R"(,{{"name":"thread_name","pid":{},"tid":{},"ph":"M","args":{{"name":"PP rank {}, TP rank 0, {}"}}}})",
          worker % dp, tid, worker / dp, kLanes[static_cast<std::size_t>(lane)]);
      fmt::format_to(
          std::back_inserter(out),
          R"(,{{"name":"thread_sort_index","pid":{},"tid":{},"ph":"M","args":{{"sort_index":{}}}}})",
          worker % dp, tid, tid);
    }
  }
  for (const std::int32_t process : processes) {
    fmt::format_to(
        std::back_inserter(out),
        R"(,{{"name":"process_name","pid":{},"ph":"M","args":{{"name":"DP rank [{}]"}}}})", process,
        process);
  }
}

/// Where each step begins in the traced picture: 32-bit sums.
std::vector<double> traced_offsets(const OpTable& table) {
  const std::size_t lanes = table.lanes();
  const auto dp = static_cast<std::size_t>(table.dp);
  std::vector<float> latest(table.steps.size(), -std::numeric_limits<float>::infinity());
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    const auto start = table.start(n), duration = table.duration(n);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      latest[lane / dp] = std::max(latest[lane / dp], start[lane] + duration[lane]);
    }
  }
  std::vector<double> offsets;
  float offset = 0;
  for (const float end : latest) {
    offsets.push_back(static_cast<double>(offset));
    const float length = 1.1F * end;
    offset += length;
  }
  return offsets;
}

std::vector<double> ideal_offsets(const Scene& scene) {
  const std::size_t steps = scene.table.steps.size();
  std::vector<double> latest(steps, -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < scene.model.ideal_end_s.size(); ++i) {
    latest[i % steps] = std::max(latest[i % steps], scene.model.ideal_end_s[i]);
  }
  std::vector<double> offsets;
  double offset = 0;
  for (const double end : latest) {
    offsets.push_back(offset);
    offset += 1.1 * end;
  }
  return offsets;
}

}  // namespace

void write_timeline(const Scene& scene, const Trace& trace, const TextSink& sink) {
  const OpTable& table = scene.table;
  const std::size_t lanes = table.lanes();
  const auto dp = static_cast<std::size_t>(table.dp);
  const std::vector<double> offsets = traced_offsets(table);
  Text text(sink);
  EventWriter events;
  std::string times, ids;
  for (std::size_t row = 0; row < trace.size(); ++row) {
    const std::uint32_t place = table.place_of_row[row];
    if (place == kNoPlace) {
      continue;
    }
    const std::size_t node = place / lanes;
    const double offset = offsets[place % lanes / dp];
    const auto start = static_cast<double>(trace.start_s[row]);
    const auto duration = static_cast<double>(trace.duration_s[row]);
    times.clear();
    if (scene.graph.group_of[node] >= 0) {
      const auto transfer = static_cast<double>(scene.traced.transfer_s[place]);
      append_times(times, start + offset + (duration - transfer), transfer);
    } else {
      append_times(times, start + offset, duration);
    }
    ids = "\"model_chunk\":";
    append_whole(ids, trace.mc[row]);
    ids += ",\"mb_id\":";
    append_whole(ids, trace.mb_id[row]);
    events.write(text.out(), trace, row, times, ids);
    text.hand_on();
  }
  write_names(table, trace, text.out());
  text.out() += ']';
  text.flush();
}

void write_ideal_timeline(const Scene& scene, const Trace& trace, const TextSink& sink) {
  const OpTable& table = scene.table;
  const std::size_t lanes = table.lanes();
  const std::size_t steps = table.steps.size();
  const auto dp = static_cast<std::size_t>(table.dp);
  const std::vector<double> offsets = ideal_offsets(scene);
  Text text(sink);
  EventWriter events;
  // All dp_ranks of a step have the same times.
  std::vector<std::string> times(table.nodes.size() * steps);
  for (std::size_t row = 0; row < trace.size(); ++row) {
    const std::uint32_t place = table.place_of_row[row];
    if (place == kNoPlace) {
      continue;
    }
    const std::size_t node = place / lanes;
    const std::size_t step = place % lanes / dp;
    std::string& own = times[node * steps + step];
    if (own.empty()) {
      const double start = scene.model.ideal_start_s[node * steps + step];
      const double duration = scene.model.ideal_end_s[node * steps + step] - start;
      if (scene.graph.group_of[node] >= 0) {
        const double transfer = scene.model.ideal_s[index(table.nodes[node].type)];
        append_times(own, start + offsets[step] + (duration - transfer), transfer);
      } else {
        append_times(own, start + offsets[step], duration);
      }
    }
    events.write(text.out(), trace, row, own, R"("model_chunk":null,"mb_id":null)");
    text.hand_on();
  }
  write_names(table, trace, text.out());
  text.out() += ']';
  text.flush();
}

}  // namespace lockstep::whatif
