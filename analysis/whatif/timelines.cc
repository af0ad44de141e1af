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
  return is_p2p(type) ? 1 : is_peer_comm(type) ? 2 : 3;
}

/// What a place in the table stands for.
struct Spot {
  std::uint32_t node, step;
  std::size_t worker;  ///< [stage * width + lane of the step]
};

/// Tells that of many places, with one division each.
class Spots {
 public:
  explicit Spots(const OpTable& table)
      : table_(table), lanes_(static_cast<std::uint32_t>(table.lanes())) {
    const std::size_t width = table.width();
    step_.resize(table.lanes());
    for (std::size_t lane = 0; lane < step_.size(); ++lane) {
      step_[lane] = static_cast<std::uint32_t>(lane / width);
    }
    for (const OpNode& node : table.nodes) {
      first_worker_.push_back(static_cast<std::size_t>(node.stage) * width);
    }
  }

  Spot at(std::uint32_t place) const {
    const std::uint32_t node = place / lanes_, lane = place - node * lanes_, step = step_[lane];
    return {node, step, first_worker_[node] + lane - step * table_.width()};
  }

 private:
  const OpTable& table_;
  std::uint32_t lanes_;  ///< fewer than places, which are 32 bits
  std::vector<std::uint32_t> step_;
  std::vector<std::size_t> first_worker_;  ///< of a node's stage
};

using Part = RecordGzip::Part;

/// The parts of an event that its type and worker decide.
class EventParts {
 public:
  explicit EventParts(const OpTable& table) {
    for (std::size_t t = 0; t < kTraceOpCount; ++t) {
      const std::string_view name = trace_op_names()[t];
      heads_[t].text = fmt::format(R"(,{{"name":"{}","cat":"{}","pid":)", name, name);
    }
    for (std::size_t w = 0; w < table.ranks.size(); ++w) {
      for (std::int64_t lane = 0; lane < kLanesPerRank; ++lane) {
        workers_.push_back(
            {.text = fmt::format(R"({},"tid":{},"ts":)", place_of(table, w % table.width()).dp_rank,
                                 table.ranks[w] * kLanesPerRank + lane)});
      }
      for (std::size_t t = 0; t < kTraceOpCount; ++t) {
        beginnings_.push_back({.text = heads_[t].text + worker(w, static_cast<TraceOp>(t)).text});
      }
    }
  }

  /// From the beginning to `"ts":`.
  void write(TraceOp type, std::size_t w, RecordGzip& out) {
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
    const Place place = place_of(table, worker % table.width());
    for (std::int64_t lane = 0; lane < kLanesPerRank; ++lane) {
      const std::int64_t tid = rank * kLanesPerRank + lane;
      fmt::format_to(
          std::back_inserter(out),
          R"(,{{"name":"thread_name","pid":{},"tid":{},"ph":"M","args":{{"name":"PP rank {}, TP rank {}, {}"}}}})",
          place.dp_rank, tid, worker / table.width(), place.cp_rank * table.tp + place.tp_rank,
          kLanes[static_cast<std::size_t>(lane)]);
      fmt::format_to(
          std::back_inserter(out),
          R"(,{{"name":"thread_sort_index","pid":{},"tid":{},"ph":"M","args":{{"sort_index":{}}}}})",
          place.dp_rank, tid, tid);
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
  const std::size_t width = table.width();
  std::vector<float> latest(table.steps.size(), -std::numeric_limits<float>::infinity());
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    const auto start = table.start(n), duration = table.duration(n);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      latest[lane / width] = std::max(latest[lane / width], start[lane] + duration[lane]);
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

Drawn drawn_as_traced(const Scene& scene, const Trace& trace, std::size_t row, const Spot& spot,
                      const std::vector<double>& offsets) {
  Drawn drawn{static_cast<double>(trace.start_s[row]) + offsets[spot.step],
              static_cast<double>(trace.duration_s[row])};
  if (scene.graph.group_of[spot.node] >= 0) {
    const auto transfer =
        static_cast<double>(scene.traced.transfer_s[scene.table.place_of_row[row]]);
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
    const double transfer = scene.model.ideal_s[node];
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
  const Spots spots(table);
  const std::vector<double> offsets = traced_offsets(table);
  EventParts events(table);
  // What follows the duration; the ids of a node hardly ever change within a step.
  struct Tail {
    std::int64_t step = -1, mc = -2, mb = -2;
    Part part;
  };
  std::vector<Tail> tails(table.nodes.size());
  constexpr std::string_view kDuration = ",\"dur\":";
  std::array<char, 2 * kPythonFloat + kDuration.size()> times;
  for (std::size_t row = 0; row < trace.size(); ++row) {
    const std::uint32_t place = table.place_of_row[row];
    if (place == kNoPlace) {
      continue;
    }
    const Spot spot = spots.at(place);
    const auto [start, duration] = drawn_as_traced(scene, trace, row, spot, offsets);
    events.write(trace.optype[row], spot.worker, out);
    char* end = write_python_float(times.data(), start * 1e6);
    end = std::copy(kDuration.begin(), kDuration.end(), end);
    end = write_python_float(end, duration * 1e6);
    out.write(std::string_view(times.data(), static_cast<std::size_t>(end - times.data())));
    Tail& tail = tails[spot.node];
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
  const Spots spots(table);
  const std::size_t steps = table.steps.size();
  const std::vector<double> offsets = ideal_offsets(scene);
  EventParts events(table);
  // All dp_ranks of a step have the same times.
  std::vector<Part> tails(table.nodes.size() * steps);
  for (std::size_t row = 0; row < trace.size(); ++row) {
    const std::uint32_t place = table.place_of_row[row];
    if (place == kNoPlace) {
      continue;
    }
    const Spot spot = spots.at(place);
    Part& tail = tails[spot.node * steps + spot.step];
    if (tail.text.empty()) {
      const auto [start, duration] = drawn_ideally(scene, spot.node, spot.step, offsets);
      append_python_float(tail.text, start * 1e6);
      tail.text += ",\"dur\":";
      append_python_float(tail.text, duration * 1e6);
      fmt::format_to(
          std::back_inserter(tail.text),
          R"(,"ph":"X","args":{{"step":{},"model_chunk":null,"mb_id":null,"seq_id":{}}}}})",
          trace.step[row], trace.seq_id[row]);
    }
    events.write(trace.optype[row], spot.worker, out);
    out.write(tail);
  }
  std::string names;
  write_names(table, trace, names);
  out.write(names + "]");
}

Timeline whatif_timeline(const Scene& scene, const Trace& trace, bool ideal) {
  const OpTable& table = scene.table;
  const Spots spots(table);
  const std::size_t width = table.width();
  const std::vector<double> offsets = ideal ? ideal_offsets(scene) : traced_offsets(table);
  Timeline out;
  out.keys = {"mb_id", "seq_id"};
  out.kinds.assign(trace_op_names().begin(), trace_op_names().end());
  out.names = out.kinds;
  out.kinds.push_back("step");
  // Which step it is stands on a line of its own, below.
  for (std::size_t s = 0; s < table.steps.size(); ++s) {
    out.names.push_back(fmt::format("step {}", table.steps[s]));
  }
  // A process a dp_rank; below it the lanes that its workers use.
  for (std::int32_t d = 0; d < table.dp; ++d) {
    out.tracks.push_back({fmt::format("DP rank {}", d), -1, d});
  }
  const bool has_peer_comm =
      std::any_of(table.nodes.begin(), table.nodes.end(),
                  [](const OpNode& node) { return is_peer_comm(node.type); });
  std::vector<std::int32_t> track_of(table.ranks.size() * kLanes.size(), -1);
  for (std::size_t worker = 0; worker < table.ranks.size(); ++worker) {
    for (const std::size_t lane : {0U, 1U, 2U, 3U}) {
      if (lane == 2 && !has_peer_comm) {
        continue;
      }
      track_of[worker * kLanes.size() + lane] = static_cast<std::int32_t>(out.tracks.size());
      out.tracks.push_back(
          {fmt::format("stage {}, rank {}, {}", worker / width, table.ranks[worker], kLanes[lane]),
           place_of(table, worker % width).dp_rank,
           static_cast<std::int32_t>(table.ranks[worker] * kLanesPerRank +
                                     static_cast<std::int64_t>(lane))});
    }
  }
  struct Span {
    Time begin = Time::max(), end;
  };
  std::vector<Span> spans(table.steps.size());
  for (std::size_t row = 0; row < trace.size(); ++row) {
    const std::uint32_t place = table.place_of_row[row];
    if (place == kNoPlace) {
      continue;
    }
    const TraceOp type = trace.optype[row];
    const Spot spot = spots.at(place);
    const auto [start, duration] = ideal ? drawn_ideally(scene, spot.node, spot.step, offsets)
                                         : drawn_as_traced(scene, trace, row, spot, offsets);
    const Time begin = Time::ps(std::llround(start * 1e12));
    const std::int32_t name = static_cast<std::int32_t>(index(type));
    const Time end = begin + Time::ps(std::max<std::int64_t>(0, std::llround(duration * 1e12)));
    const auto first_argument = static_cast<std::int64_t>(out.arguments.size());
    if (trace.mb_id[row] >= 0) {
      out.arguments.push_back({0, trace.mb_id[row]});
    }
    out.arguments.push_back({1, trace.seq_id[row]});
    out.events.push_back(
        {.track = track_of[spot.worker * kLanes.size() + static_cast<std::size_t>(lane_of(type))],
         .name = name,
         .kind = name,
         .arguments = static_cast<std::int32_t>(static_cast<std::int64_t>(out.arguments.size()) -
                                                first_argument),
         .first_argument = first_argument,
         .begin = begin,
         .end = end});
    Span& step = spans[spot.step];
    step.begin = std::min(step.begin, begin);
    step.end = std::max(step.end, end);
  }
  const auto steps_track = static_cast<std::int32_t>(out.tracks.size());
  out.tracks.push_back({"steps", -1, table.dp});
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const auto name = static_cast<std::int32_t>(kTraceOpCount + s);
    out.events.push_back({.track = steps_track,
                          .name = name,
                          .kind = static_cast<std::int32_t>(kTraceOpCount),
                          .arguments = 0,
                          .first_argument = 0,
                          .begin = spans[s].begin,
                          .end = spans[s].end});
  }
  return out;
}

}  // namespace lockstep::whatif
