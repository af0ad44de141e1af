#include "profiler/run/run_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/json.h"
#include "profiler/run/aicb_words.h"
#include "trace/aicb_bandwidth.h"

namespace lockstep {
namespace {

/// Mean and deviation of values as they come, in their order: sums are as AICB's to the digit.
class Spread {
 public:
  void add(double value) { values_.push_back(value); }
  std::int64_t count() const { return static_cast<std::int64_t>(values_.size()); }
  double mean() const {
    double sum = 0;
    for (const double value : values_) {
      sum += value;
    }
    return values_.empty() ? 0 : sum / static_cast<double>(values_.size());
  }
  double deviation() const {
    const double middle = mean();
    double sum = 0;
    for (const double value : values_) {
      sum += (value - middle) * (value - middle);
    }
    return values_.empty() ? 0 : std::sqrt(sum / static_cast<double>(values_.size()));
  }
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
};

std::vector<RunSummary::Row> rows_of(const RunPlan& plan, const RunLog& log) {
  struct Values {
    std::int64_t ranks = 1;
    Spread ms, busbw;
  };
  std::map<std::tuple<std::string, std::string, std::int64_t>, Values> by_key;
  for (const RunRecord& record : log.records) {
    const RunItem& item = item_of(plan, record);
    if (item.comm == CommType::kNone || item.comm == CommType::kBarrier ||
        item.stage.starts_with("init")) {
      continue;
    }
    const std::string type(aicb_comm_name(item));
    Values& values = by_key[{type, group_name(plan, item), item.bytes}];
    values.ranks = group_size(plan, item);
    values.ms.add(1e3 * record.seconds);
    values.busbw.add(aicb_bandwidth(type, item.bytes, 1e3 * record.seconds, values.ranks).busbw);
  }
  std::vector<RunSummary::Row> rows;
  for (const auto& [key, values] : by_key) {
    const auto& [type, group, bytes] = key;
    rows.push_back({type, group, bytes, values.ranks, values.ms.count(), values.ms.mean(),
                    values.ms.deviation(), values.busbw.mean(), values.busbw.deviation()});
  }
  return rows;
}

std::optional<RunSummary::Iterations> iterations_of(const RunPlan& plan, const RunLog& log) {
  Spread ms;
  bool trains = false;  // an epoch of nothing but init is none
  std::size_t iteration = 0;
  for (const RunRecord& record : log.records) {
    const RunItem& item = item_of(plan, record);
    if (!item.epoch_end) {
      trains = trains || !item.stage.starts_with("init");
      continue;
    }
    const double seconds = log.iterations_s.at(iteration++);
    if (trains) {
      ms.add(1e3 * seconds);
    }
    trains = false;
  }
  if (ms.count() == 0) {
    return std::nullopt;
  }
  std::vector<double> sorted = ms.values();
  std::ranges::sort(sorted);
  const auto ninetieth = static_cast<std::size_t>(0.9 * static_cast<double>(sorted.size()));
  return RunSummary::Iterations{ms.count(), ms.values().front(), sorted.back(), sorted.front(),
                                ms.mean(),  sorted[ninetieth],   ms.deviation()};
}

}  // namespace

RunSummary summarize(const RunPlan& plan, const RunLog& log) {
  return {rows_of(plan, log), iterations_of(plan, log)};
}

std::string to_text(const RunSummary& summary) {
  const std::string rule(105, '-'), wide_rule(124, '-');
  std::string text = "\n\tDetailed comm info for AICB train stage\n" + rule + "\n";
  text += fmt::format("{:<15} {:<12} {:<12} {:<12} {:<24} {:<24}\n", "Comm_Type", "Comm_Group",
                      "Message_Size", "Count", "Avg_Elapsed_Time ± Std", "Avg_BusBw ± Std");
  text += rule + "\n";
  for (const RunSummary::Row& row : summary.rows) {
    text += fmt::format("{:<15} {:<12} {:<12} {:<16} {:<24} {:<18}\n", "CommType." + row.type,
                        "CommGroup." + row.group, aicb_size_text(row.bytes),
                        fmt::format("{:.2f}", static_cast<double>(row.count)),
                        fmt::format("{:.2f}±{:.2f}", row.mean_ms, row.deviation_ms),
                        fmt::format("{:.2f}±{:.2f}", row.mean_busbw, row.deviation_busbw));
  }
  if (!summary.iterations) {
    return text;
  }
  const RunSummary::Iterations& all = *summary.iterations;
  text += "\n\n\tDetailed info for AICB iteration time\n" + wide_rule + "\n";
  text += fmt::format("{:<18} {:<20} {:<20} {:<20} {:<20} {:<20}\n", "Init time",
                      "Max iteration time", "Min iteration time", "Avg iteration time",
                      "P90 iteration time", "Iteration time Std");
  text += wide_rule + "\n";
  // As AICB has it, "Init time" is the first iteration's.
  text += fmt::format("{:<18.2f} {:<20.2f} {:<20.2f} {:<20.2f} {:<20.2f} {:<20.2f}\n", all.first_ms,
                      all.longest_ms, all.shortest_ms, all.mean_ms, all.p90_ms, all.deviation_ms);
  return text;
}

std::string to_json_text(const RunSummary& summary, const RunPlan& plan,
                         const std::string& transport) {
  constexpr double kGi = 1024.0 * 1024 * 1024, kMs = 1e-3;
  Json rows = Json::array();
  for (const RunSummary::Row& row : summary.rows) {
    rows.push_back({{"op", row.type},
                    {"group", row.group},
                    {"ranks", row.ranks},
                    {"size_bytes", row.bytes},
                    {"count", row.count},
                    {"mean_s", kMs * row.mean_ms},
                    {"deviation_s", kMs * row.deviation_ms},
                    {"bus_Bps", kGi * row.mean_busbw},
                    {"bus_deviation_Bps", kGi * row.deviation_busbw}});
  }
  Json json{{"schema", "lockstep-run-summary/1"},
            {"transport", transport},
            {"rank", plan.rank},
            {"world", plan.world},
            {"rows", std::move(rows)}};
  if (summary.iterations) {
    const RunSummary::Iterations& all = *summary.iterations;
    json["iterations"] = {{"count", all.count},
                          {"first_s", kMs * all.first_ms},
                          {"longest_s", kMs * all.longest_ms},
                          {"shortest_s", kMs * all.shortest_ms},
                          {"mean_s", kMs * all.mean_ms},
                          {"p90_s", kMs * all.p90_ms},
                          {"deviation_s", kMs * all.deviation_ms}};
  }
  return to_text(json);
}

}  // namespace lockstep
