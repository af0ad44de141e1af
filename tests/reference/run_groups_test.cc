// The groups that AICB's own run makes of its ranks.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "profiler/run/run_plan.h"
#include "tests/support/reference.h"

namespace lockstep::run_groups_test {
namespace {

using Groups = std::vector<std::vector<std::int32_t>>;

Groups ours(const std::string& kind, const CsvCut& cut, std::int64_t world) {
  RunChoice choice;
  choice.world = world;
  Warnings warnings;
  const RunPlan plan =
      read_aicb_workload("comm_type,comm_group,comm_group_size,msg_size,stage\nall_reduce," + kind +
                             "_group,None,8,f\n",
                         "w.csv", cut, choice, warnings);
  Groups groups;
  for (const RunGroup& group : plan.groups) {
    groups.push_back(group.ranks);
  }
  std::ranges::sort(groups);
  return groups;
}

TEST(RunGroups, AreAicbs) {
  LOCKSTEP_NEEDS_REFERENCE();
  const Json cases =
      Json::parse(testing::slurp(testing::reference_dir() + "/aicb/L007/out/rank_groups.json"));
  int compared = 0;
  for (const Json& one : cases) {
    if (one.at("cp") != 1) {
      continue;  // AICB's CSV knows no context parallelism
    }
    const CsvCut cut{one.at("tp"), one.at("ep"), one.at("pp")};
    const std::int64_t world = cut.tp * cut.pp * one.at("dp").get<std::int64_t>();
    for (const auto& [kind, ranks] : one.at("groups").items()) {
      auto theirs = ranks.get<Groups>();
      std::ranges::sort(theirs);
      EXPECT_EQ(ours(kind, cut, world), theirs)
          << kind << " of tp " << cut.tp << " ep " << cut.ep << " pp " << cut.pp << ", " << world;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 30);
}

}  // namespace
}  // namespace lockstep::run_groups_test
