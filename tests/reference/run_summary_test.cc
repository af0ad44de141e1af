// AICB's own summary of a log of a run, made again from the log's rows.
#include "profiler/run/run_summary.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv_fields.h"
#include "base/text.h"
#include "tests/support/reference.h"

namespace lockstep::run_summary_test {
namespace {

std::string bare(const std::string& text) { return text.substr(text.rfind('.') + 1); }

CommType comm_of(const std::string& type) {
  return type == "all_reduce"       ? CommType::kAllReduce
         : type == "all_gather"     ? CommType::kAllGather
         : type == "reduce_scatter" ? CommType::kReduceScatter
         : type == "broadcast"      ? CommType::kBroadcast
         : type == "computation"    ? CommType::kNone
                                    : CommType::kBarrier;
}

TEST(RunSummary, IsAicbs) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::string folder = testing::reference_dir() + "/aicb/L003/out/";
  const std::string text = testing::slurp(folder + "results/comm_logs/synthetic_run_log.csv.gz");
  std::string_view rest = text, line;
  std::vector<std::string> fields;
  ASSERT_TRUE(next_line(rest, line));
  RunPlan plan;
  RunLog log;
  std::map<std::pair<std::string, std::string>, int> groups;
  while (next_line(rest, line)) {
    split_csv(line, fields);
    RunItem item;
    const std::string type = bare(fields[0]);
    item.epoch_end = type == "epoch_end";
    item.comm = item.epoch_end ? CommType::kNone : comm_of(type);
    item.stage = fields[4];
    const double seconds = *to_double(fields[8]) / 1000;
    if (item.comm != CommType::kNone) {
      ASSERT_NE(item.comm, CommType::kBarrier) << type;
      item.bytes = *to_int(fields[3]);
      const auto [place, fresh] =
          groups.emplace(std::pair(fields[1], fields[2]), static_cast<int>(groups.size()));
      if (fresh) {
        plan.groups.push_back({bare(fields[1]), {}});
        plan.groups.back().ranks.resize(static_cast<std::size_t>(*to_int(fields[2])));
      }
      item.group = place->second;
    }
    if (item.epoch_end) {
      log.iterations_s.push_back(seconds);
    }
    log.records.push_back({static_cast<std::int32_t>(plan.items.size()), 0, seconds});
    plan.items.push_back(item);
  }
  const std::string ours = to_text(summarize(plan, log));
  const std::string theirs = testing::slurp(folder + "analyze.txt");
  std::string_view a = ours, b = theirs, line_a, line_b;
  int lines = 0;
  while (next_line(b, line_b)) {
    if (trim(line_b).empty()) {
      continue;  // how many lines are left empty does not matter
    }
    do {
      ASSERT_TRUE(next_line(a, line_a)) << line_b;
    } while (trim(line_a).empty());
    EXPECT_EQ(line_a, line_b);
    ++lines;
  }
  EXPECT_GT(lines, 15);
}

}  // namespace
}  // namespace lockstep::run_summary_test
