#include "analysis/whatif/timelines.h"

#include <algorithm>
#include <array>
#include <cmath>
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

using Part = RecordGzip::Part;

/// The parts of an event that its type and worker decide.
class EventParts {
 public:
  explicit EventParts(const OpTable& table) : dp_(static_cast<std::size_t>(table.dp)) {
    for (std::size_t t = 0; t < kTraceOpCount; ++t) {
      const std::string_view name = trace_op_names()[t];
      heads_[t].text = fmt::format(R"(,{{"name":"{}","cat":"{}","pid":)", name, name);
    }
    for (std::size_t w = 0; w < table.ranks.size(); ++w) {
      for (std::int64_t lane = 0; lane < kLanesPerRank; ++lane) {
        workers_.push_back({.text = fmt::format(R"({},"tid":{},"ts":)", w % dp_,
                                                table.ranks[w] * kLanesPerRank + lane)});
      }
      for (std::size_t t = 0; t < kTraceOpCount; ++t) {
        beginnings_.push_back({.text = heads_[t].text + worker(w, static_cast<TraceOp>(t)).text});
      }
    }
  }

  /// From the beginning to `"ts":`.
  void write(const Trace& trace, std::size_t row, RecordGzip& out) {
    const TraceOp type = trace.optype[row];
    const std::size_t w = static_cast<std::size_t>(trace.stage[row]) * dp_ +
                          static_cast<std::size_t>(trace.dp_rank[row]);
    Part& beginning = beginnings_[w * kTraceOpCount + index(type)];
    if (first_) {
      first_ = false;
      out.write("[" + beginning.text.substr(1));  // no comma before it
    } else {
      out.write(beginning, heads_[index(type)], worker(w, type));
    }
  }

 private:
  Part& worker(std::size_t w, TraceOp type) {
    return workers_[w * kLanesPerRank + static_cast<std::size_t>(lane_of(type))];
  }

  std::array<Part, kTraceOpCount> heads_;
  std::vector<Part> workers_;
  std::vector<Part> beginnings_;  ///< head and worker, [worker][type]
  std::size_t dp_;
  bool first_ = true;
};

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

/// When a row is drawn: of a grouped operation the transfer, not the wait for its peers.
struct Drawn {
  double start = 0, duration = 0;  ///< seconds since the first step's begin
};

Drawn drawn_as_traced(const Scene& scene, const Trace& trace, std::size_t row,
                      const std::vector<double>& offsets) {
  const std::size_t place = scene.table.place_of_row[row];
  const std::size_t lanes = scene.table.lanes();
  Drawn drawn{static_cast<double>(trace.start_s[row]) +
                  offsets[place % lanes / static_cast<std::size_t>(scene.table.dp)],
              static_cast<double>(trace.duration_s[row])};
  if (scene.graph.group_of[place / lanes] >= 0) {
    const auto transfer = static_cast<double>(scene.traced.transfer_s[place]);
    drawn.start += drawn.duration - transfer;
    drawn.duration = transfer;
  }
  return drawn;
}

/// All dp_ranks of a step have the same times.
Drawn drawn_ideally(const Scene& scene, std::size_t node, std::size_t step,
                    const std::vector<double>& offsets) {
  const std::size_t at = node * scene.table.steps.size() + step;
  Drawn drawn{scene.model.ideal_start_s[at],
              scene.model.ideal_end_s[at] - scene.model.ideal_start_s[at]};
  drawn.start += offsets[step];
  if (scene.graph.group_of[node] >= 0) {
    const double transfer = scene.model.ideal_s[index(scene.table.nodes[node].type)];
    drawn.start += drawn.duration - transfer;
    drawn.duration = transfer;
  }
  return drawn;
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

void write_timeline(const Scene& scene, const Trace& trace, RecordGzip& out) {
  const OpTable& table = scene.table;
  const std::size_t lanes = table.lanes();
  const std::vector<double> offsets = traced_offsets(table);
  EventParts events(table);
  // What follows the duration; the ids of a node hardly ever change within a step.
  struct Tail {
    std::int64_t step = -1, mc = -2, mb = -2;
    Part part;
  };
  std::vector<Tail> tails(table.nodes.size());
  std::string times;
  for (std::size_t row = 0; row < trace.size(); ++row) {
    const std::uint32_t place = table.place_of_row[row];
    if (place == kNoPlace) {
      continue;
    }
    const auto [start, duration] = drawn_as_traced(scene, trace, row, offsets);
    events.write(trace, row, out);
    times.clear();
    append_python_float(times, start * 1e6);
    times += ",\"dur\":";
    append_python_float(times, duration * 1e6);
    out.write(times);
    Tail& tail = tails[place / lanes];
    if (tail.step != trace.step[row] || tail.mc != trace.mc[row] || tail.mb != trace.mb_id[row]) {
      tail = {trace.step[row],
              trace.mc[row],
              trace.mb_id[row],
              {.text = fmt::format(
                   R"(,"ph":"X","args":{{"step":{},"model_chunk":{},"mb_id":{},"seq_id":{}}}}})",
                   trace.step[row], trace.mc[row], trace.mb_id[row], trace.seq_id[row])}};
    }
    out.write(tail.part);
  }
  std::string names;
  write_names(table, trace, names);
  out.write(names + "]");
}

void write_ideal_timeline(const Scene& scene, const Trace& trace, RecordGzip& out) {
  const OpTable& table = scene.table;
  const std::size_t lanes = table.lanes();
  const std::size_t steps = table.steps.size();
  const auto dp = static_cast<std::size_t>(table.dp);
  const std::vector<double> offsets = ideal_offsets(scene);
  EventParts events(table);
  // All dp_ranks of a step have the same times.
  std::vector<Part> tails(table.nodes.size() * steps);
  for (std::size_t row = 0; row < trace.size(); ++row) {
    const std::uint32_t place = table.place_of_row[row];
    if (place == kNoPlace) {
      continue;
    }
    const std::size_t node = place / lanes;
    const std::size_t step = place % lanes / dp;
    Part& tail = tails[node * steps + step];
    if (tail.text.empty()) {
      const auto [start, duration] = drawn_ideally(scene, node, step, offsets);
      append_python_float(tail.text, start * 1e6);
      tail.text += ",\"dur\":";
      append_python_float(tail.text, duration * 1e6);
      fmt::format_to(
          std::back_inserter(tail.text),
          R"(,"ph":"X","args":{{"step":{},"model_chunk":null,"mb_id":null,"seq_id":{}}}}})",
          trace.step[row], trace.seq_id[row]);
    }
    events.write(trace, row, out);
    out.write(tail);
  }
  std::string names;
  write_names(table, trace, names);
  out.write(names + "]");
}

Timeline whatif_timeline(const Scene& scene, const Trace& trace, bool ideal) {
  const OpTable& table = scene.table;
  const std::size_t lanes = table.lanes();
  const auto dp = static_cast<std::size_t>(table.dp);
  const std::vector<double> offsets = ideal ? ideal_offsets(scene) : traced_offsets(table);
  Timeline out;
  out.keys = {"step", "mb_id", "seq_id"};
  out.kinds.assign(trace_op_names().begin(), trace_op_names().end());
  out.names = out.kinds;
  // A process a dp_rank; below it the lanes that its workers use.
  for (std::size_t d = 0; d < dp; ++d) {
    out.tracks.push_back({fmt::format("DP rank {}", d), -1, static_cast<std::int32_t>(d)});
  }
  std::vector<std::int32_t> track_of(table.ranks.size() * kLanes.size(), -1);
  for (std::size_t worker = 0; worker < table.ranks.size(); ++worker) {
    for (const std::size_t lane : {0U, 1U, 3U}) {
      track_of[worker * kLanes.size() + lane] = static_cast<std::int32_t>(out.tracks.size());
      out.tracks.push_back(
          {fmt::format("stage {}, rank {}, {}", worker / dp, table.ranks[worker], kLanes[lane]),
           static_cast<std::int32_t>(worker % dp),
           static_cast<std::int32_t>(table.ranks[worker] * kLanesPerRank +
                                     static_cast<std::int64_t>(lane))});
    }
  }
  for (std::size_t row = 0; row < trace.size(); ++row) {
    const std::uint32_t place = table.place_of_row[row];
    if (place == kNoPlace) {
      continue;
    }
    const TraceOp type = trace.optype[row];
    const std::size_t worker = static_cast<std::size_t>(trace.stage[row]) * dp +
                               static_cast<std::size_t>(trace.dp_rank[row]);
    const auto [start, duration] =
        ideal ? drawn_ideally(scene, place / lanes, place % lanes / dp, offsets)
              : drawn_as_traced(scene, trace, row, offsets);
    const Time begin = Time::ps(std::llround(start * 1e12));
    const std::int32_t name = static_cast<std::int32_t>(index(type));
    out.events.push_back(
        {.track = track_of[worker * kLanes.size() + static_cast<std::size_t>(lane_of(type))],
         .name = name,
         .kind = name,
         .arguments = 3,
         .first_argument = static_cast<std::int64_t>(out.arguments.size()),
         .begin = begin,
         .end = begin + Time::ps(std::max<std::int64_t>(0, std::llround(duration * 1e12)))});
    out.arguments.push_back({0, trace.step[row]});
    out.arguments.push_back({1, trace.mb_id[row]});
    out.arguments.push_back({2, trace.seq_id[row]});
  }
  return out;
}

}  // namespace lockstep::whatif
