#include "profiler/run/run_log.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "base/json.h"
#include "profiler/run/aicb_words.h"
#include "profiler/statistics.h"
#include "trace/aicb_bandwidth.h"
#include "trace/timeline.h"

namespace lockstep {
namespace {

/// Python's repr of a float, as far as milliseconds need it: the shortest text, with a point.
std::string python_float(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

bool is_logged(const RunItem& item) { return item.comm != CommType::kBarrier; }

}  // namespace

std::string comm_log_csv(const RunPlan& plan, const RunLog& log) {
  std::string text =
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
      "busbw,count\n";
  std::size_t iteration = 0;
  for (const RunRecord& record : log.records) {
    const RunItem& item = item_of(plan, record);
    if (!is_logged(item)) {
      continue;
    }
    const std::string_view type = aicb_comm_name(item);
    if (item.epoch_end) {
      const double ms = 1e3 * log.iterations_s.at(iteration++);
      text += fmt::format("CommType.epoch_end,None,None,0,,None,None,,{},0.0,0.0,1\n",
                          python_float(ms));
      continue;
    }
    const double ms = 1e3 * record.seconds;
    if (item.comm == CommType::kNone) {
      text += fmt::format("CommType.computation,None,None,{},{},None,None,,{},0.0,0.0,1\n",
                          item.compute.m > 0
                              ? fmt::format("(({} {}) ({} {}))", item.compute.m, item.compute.k,
                                            item.compute.k, item.compute.n)
                              : "0",
                          item.stage, python_float(ms));
      continue;
    }
    const std::int64_t size = group_size(plan, item);
    const AicbBandwidth bandwidth = aicb_bandwidth(type, item.bytes, ms, size);
    const std::string additional =
        item.comm == CommType::kSendRecv
            ? fmt::format("{}_rank_{}", item.send ? "send" : "recv", item.peer)
            : std::string();
    const std::string dst = item.comm == CommType::kReduce ? std::to_string(root_rank(plan, item))
                                                           : std::string("None");
    text +=
        fmt::format("CommType.{},CommGroup.{},{},{},{},{},None,{},{},{},{},1\n", type,
                    group_name(plan, item), size, item.bytes, item.stage, dst, additional,
                    python_float(ms), python_float(bandwidth.algbw), python_float(bandwidth.busbw));
  }
  return text;
}

std::string nccl_tests_tables(const RunPlan& plan, const RunLog& log, const std::string& gpu) {
  // By operation and ranks a table; rows by size and root.
  std::map<std::tuple<CommType, std::int64_t>, std::map<std::tuple<std::int64_t, int>, Mean>>
      tables;
  for (const RunRecord& record : log.records) {
    const RunItem& item = item_of(plan, record);
    if (item.comm != CommType::kNone && item.comm != CommType::kBarrier) {
      const std::int64_t ranks = item.comm == CommType::kSendRecv ? 2 : group_size(plan, item);
      const int root = has_root(item.comm) ? item.root : -1;
      tables[{item.comm, ranks}][{item.bytes, root}].add(record.seconds);
    }
  }
  std::string text;
  for (const auto& [key, rows] : tables) {
    const auto& [comm, ranks] = key;
    const auto n = static_cast<double>(ranks);
    const bool in_parts = comm == CommType::kAllGather || comm == CommType::kReduceScatter ||
                          comm == CommType::kAllToAll;
    const double factor = comm == CommType::kAllReduce ? 2 * (n - 1) / n
                          : in_parts                   ? (n - 1) / n
                                                       : 1.0;
    std::string program(name_of(comm));
    constexpr std::pair<CommType, std::string_view> kPrograms[] = {
        {CommType::kAllReduce, "all_reduce"},
        {CommType::kAllGather, "all_gather"},
        {CommType::kReduceScatter, "reduce_scatter"},
        {CommType::kAllToAll, "alltoall"},
        {CommType::kSendRecv, "sendrecv"},
        {CommType::kBroadcast, "broadcast"},
        {CommType::kReduce, "reduce"}};
    for (const auto& [type, name] : kPrograms) {
      program = type == comm ? std::string(name) : program;
    }
    text += fmt::format(
        "# Collective test starting: {}_perf\n# nThread 1 nGpus 1\n#\n# Using devices\n", program);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      text += fmt::format("#  Rank {:>2} Group  0 Pid      0 on {:>10} device {:>2} [0x00] {}\n",
                          rank, "localhost", rank, gpu);
    }
    text += "#\n#                                                              out-of-place\n";
    text += fmt::format("#{:>11} {:>13} {:>9} {:>7} {:>7} {:>8} {:>7} {:>7} {:>6}\n", "size",
                        "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong");
    text += fmt::format("#{:>11} {:>13} {:>9} {:>7} {:>7} {:>8} {:>7} {:>7}\n", "(B)", "(elements)",
                        "", "", "", "(us)", "(GB/s)", "(GB/s)");
    const bool reduces = comm == CommType::kAllReduce || comm == CommType::kReduceScatter ||
                         comm == CommType::kReduce;
    for (const auto& [row, times] : rows) {
      const auto& [bytes, root] = row;
      const std::int64_t elements = bytes / 2;  // of bf16; a rank's part where there are parts
      const double seconds = times.value();
      const double rate = seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0;
      text +=
          fmt::format("{:>12} {:>13} {:>9} {:>7} {:>7} {:>8.2f} {:>7.2f} {:>7.2f} {:>6}\n", bytes,
                      in_parts ? (elements + ranks - 1) / ranks : elements, "bfloat16",
                      reduces ? "sum" : "none", root, seconds * 1e6, rate, rate * factor, "N/A");
    }
    text += "#\n\n";
  }
  return text;
}

std::string byteps_json(const RunPlan& plan, const RunLog& log, std::int64_t first,
                        std::int64_t last) {
  Json events = Json::array();
  std::int64_t iteration = 0;
  for (const RunRecord& record : log.records) {
    const RunItem& item = item_of(plan, record);
    if (item.epoch_end) {
      ++iteration;
      continue;
    }
    if (item.comm == CommType::kNone || iteration < first || iteration > last) {
      continue;
    }
    const std::string tensor =
        fmt::format("Comm.byteps.{}", item.stage.empty() ? item.name : item.stage);
    // The tensor's whole and its one stage, for which the library's push and pull are one call.
    for (const std::string& what : {std::string("total"), std::string("REDUCE")}) {
      events.push_back({{"name", what == "total" ? tensor : tensor + "." + what},
                        {"ph", "X"},
                        {"pid", tensor},
                        {"tid", what},
                        {"ts", std::llround(record.begin_s * 1e6)},
                        {"dur", std::max<long long>(1, std::llround(record.seconds * 1e6))},
                        {"args", {{"name", tensor}, {"bytes", item.bytes}}}});
    }
  }
  return to_text(Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}});
}

void write_run_timeline(const RunPlan& plan, const RunLog& log, const std::string& path) {
  Timeline timeline;
  timeline.tracks = {{fmt::format("rank {}", plan.rank), -1, plan.rank}, {"compute", 0, 0}};
  timeline.kinds = {"compute"};
  timeline.keys = {"bytes"};
  std::map<std::string, std::int32_t> names, tracks, kinds;
  const auto index = [](std::map<std::string, std::int32_t>& known, const std::string& name,
                        auto&& make) {
    const auto [place, fresh] = known.emplace(name, 0);
    if (fresh) {
      place->second = make();
    }
    return place->second;
  };
  for (const RunRecord& record : log.records) {
    const RunItem& item = item_of(plan, record);
    if (item.epoch_end) {
      continue;
    }
    TimelineEvent event;
    event.name = index(names, item.name, [&] {
      timeline.names.push_back(item.name);
      return static_cast<std::int32_t>(timeline.names.size()) - 1;
    });
    event.track = 1;
    if (item.comm != CommType::kNone) {
      // What is on one track follows each other.
      const std::string name = item.comm == CommType::kSendRecv
                                   ? plan.streams[static_cast<std::size_t>(item.stream)]
                                   : group_name(plan, item);
      event.track = index(tracks, name, [&] {
        const auto number = static_cast<std::int32_t>(timeline.tracks.size());
        timeline.tracks.push_back({name, 0, number - 1});
        return number;
      });
      event.kind = index(kinds, std::string(name_of(item.comm)), [&] {
        timeline.kinds.emplace_back(name_of(item.comm));
        return static_cast<std::int32_t>(timeline.kinds.size()) - 1;
      });
      event.first_argument = static_cast<std::int64_t>(timeline.arguments.size());
      event.arguments = 1;
      timeline.arguments.push_back({0, item.bytes});
    }
    event.begin = Time::seconds(record.begin_s);
    event.end = event.begin + Time::seconds(record.seconds);
    timeline.events.push_back(event);
  }
  write_chrome_trace(timeline, path);
}

}  // namespace lockstep
