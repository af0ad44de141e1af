#include "simulator/replay/traffic_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep::traffic_classes_test {
namespace {

using ::testing::HasSubstr;

TEST(TrafficClasses, TheLastRuleThatFitsHolds) {
  const auto classes = TrafficClasses::parse("tp=1, alltoall=2,job2=0");
  EXPECT_EQ(classes.of(GroupKind::kTp, CommType::kAllReduce, 0), 1);
  EXPECT_EQ(classes.of(GroupKind::kTp, CommType::kAllToAll, 0), 2);
  EXPECT_EQ(classes.of(GroupKind::kEp, CommType::kAllToAll, 0), 2);
  EXPECT_EQ(classes.of(GroupKind::kEp, CommType::kAllToAll, 1), 0);
  EXPECT_EQ(classes.of(GroupKind::kDp, CommType::kAllReduce, 0), -1);
  EXPECT_EQ(classes.needed(), 4);
  EXPECT_EQ(TrafficClasses::parse("dp=7").needed(), 8);
  EXPECT_TRUE(TrafficClasses().empty());
}

TEST(TrafficClasses, SaysWhatIsWrong) {
  const auto error_of = [](const char* text) -> std::string {
    try {
      TrafficClasses::parse(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of("tensor=1"), HasSubstr("'tensor=1' names no traffic"));
  EXPECT_THAT(error_of("none=1"), HasSubstr("names no traffic"));
  EXPECT_THAT(error_of("job0=1"), HasSubstr("names no traffic"));
  EXPECT_THAT(error_of("tp"), HasSubstr("a class 0 to 7"));
  EXPECT_THAT(error_of("tp=8"), HasSubstr("a class 0 to 7"));
  EXPECT_THAT(error_of("tp=1,"), HasSubstr("names no traffic"));
}

}  // namespace
}  // namespace lockstep::traffic_classes_test
