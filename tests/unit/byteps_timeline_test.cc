#include "trace/byteps_timeline.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "trace/log_reader.h"
#include "trace/physical_log.h"

namespace lockstep::byteps_timeline_test {
namespace {

/// Rank 2's "dp" and "tp" tracks, and rank 3's "dp", with a reduction of a bucket from 10 to 30 us
/// and its all-gather from 40 to 45.
Timeline one_step() {
  Timeline timeline;
  timeline.tracks = {
      {"rank 2", -1, 2}, {"dp", 0, 0}, {"tp", 0, 1}, {"rank 3", -1, 3}, {"dp", 3, 0}};
  timeline.names = {"bucket 0", "layer"};
  timeline.kinds = {"compute", "reducescatter", "allgather", "allreduce"};
  const auto add = [&](int track, int name, int kind, int begin, int end) {
    timeline.events.push_back({track, name, kind, 0, 0, Time::us(begin), Time::us(end)});
  };
  add(1, 0, 1, 10, 30);
  add(1, 0, 2, 40, 45);
  add(2, 1, 3, 0, 5);    // of tensor parallelism
  add(4, 0, 1, 11, 31);  // another rank's
  return timeline;
}

// Two steps, the second from 100 us on: for each collective a total and a stage in its queue.
TEST(BytePsTimeline, HoldsATotalAndAStageForEachCollective) {
  const std::vector<StepPicture> steps{{one_step(), Time()}, {one_step(), Time::us(100)}};
  const std::string text = byteps_comm_json(steps, 2);
  const Json json = parse_json(text, "comm.json");
  ASSERT_EQ(json["traceEvents"].size(), 8U);
  EXPECT_EQ(json["traceEvents"][0]["tid"], "total");
  EXPECT_EQ(json["traceEvents"][0]["pid"], "Comm.byteps.bucket 0");
  EXPECT_EQ(json["traceEvents"][1]["name"], "Comm.byteps.bucket 0.REDUCE");
  EXPECT_EQ(json["traceEvents"][3]["name"], "Comm.byteps.bucket 0.BROADCAST");
  EXPECT_EQ(json["traceEvents"][3]["tid"], "0");
  EXPECT_EQ(json["traceEvents"][7]["ts"], 140.0);
  EXPECT_EQ(json["traceEvents"][7]["dur"], 5.0);
  EXPECT_EQ(byteps_comm_json(steps, 9), "");
}

// Two buckets of one name: a tensor each, by when they begin, the same in the next step. Reduction
// and gathering of a bucket are of one tensor.
TEST(BytePsTimeline, TellsBucketsOfOneNameApart) {
  Timeline step = one_step();
  step.events.push_back({1, 0, 1, 0, 0, Time::us(2), Time::us(8)});
  step.events.push_back({1, 0, 2, 0, 0, Time::us(50), Time::us(55)});
  const Json json = parse_json(
      byteps_comm_json(std::vector<StepPicture>{{step, Time()}, {step, Time::us(100)}}, 2), "json");
  std::vector<std::string> tensors;
  for (const Json& event : json["traceEvents"]) {
    if (event["tid"] == "total") {
      tensors.push_back(event["pid"]);
    }
  }
  const std::vector<std::string> one = {"Comm.byteps.bucket 0.0", "Comm.byteps.bucket 0.1",
                                        "Comm.byteps.bucket 0.0", "Comm.byteps.bucket 0.1"};
  std::vector<std::string> both = one;
  both.insert(both.end(), one.begin(), one.end());
  EXPECT_EQ(tensors, both);
  EXPECT_EQ(json["traceEvents"][0]["ts"], 2.0);
  EXPECT_EQ(json["traceEvents"][3]["tid"], "65536");
}

}  // namespace
}  // namespace lockstep::byteps_timeline_test
