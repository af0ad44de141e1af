#include "app/generate_exact.h"

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

}  // namespace
}  // namespace lockstep::generate_exact_test
