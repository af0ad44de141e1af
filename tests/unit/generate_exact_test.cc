#include "app/generate_exact.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace lockstep::generate_exact_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

ExactJob job_of(std::string_view words) {
  std::vector<std::string> list;
  for (const std::string_view word : split_blanks(words)) {
    list.emplace_back(word);
  }
  return exact_job(list);
}

TEST(GenerateExact, TheEncodersOutputThatStagesDoNotPassOnIsWarnedOf) {
  EXPECT_THAT(job_of("--model t5-large --gpus 8 --pp 2").warnings,
              Contains(HasSubstr("cross.kv reads the encoder's output, which the messages between "
                                 "pp 2 stages leave out")));
  EXPECT_THAT(job_of("--model t5-large --gpus 8").warnings,
              Not(Contains(HasSubstr("encoder's output"))));
  EXPECT_THAT(job_of("--model gpt3-125m --gpus 8 --pp 2").warnings,
              Not(Contains(HasSubstr("encoder's output"))));
}

/// Every other layer of gpt-oss has a window of 128 tokens: cores of one name with other FLOPs.
TEST(GenerateExact, OperatorsOfOneNameAndOtherSizesAreAllListed) {
  ExactJob exact = job_of("--model gpt-oss-20b --num-layers 4 --gpus 8 --seq 4096");
  exact_workload_of(exact);
  std::vector<double> flops;
  for (const TimedOperator& each : exact.operators) {
    if (each.op.name == "attention.core forward") {
      flops.push_back(each.op.flops);
    }
  }
  ASSERT_EQ(flops.size(), 2U);
  EXPECT_NE(flops[0], flops[1]);
  EXPECT_EQ(std::ranges::count(exact.operators, "attention.qkv forward",
                               [](const TimedOperator& each) { return each.op.name; }),
            1);
}

}  // namespace
}  // namespace lockstep::generate_exact_test
