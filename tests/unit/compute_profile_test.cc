#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/compute/profile_json.h"

namespace lockstep::compute_profile_test {
namespace {

using ::testing::HasSubstr;

std::string with_operators(const std::string& operators) {
  return R"({"schema": "lockstep-profile/1", "gpu": "H100", "operators": [)" + operators + "]}";
}

std::string error_of(const std::string& text) {
  try {
    read_profile_json(text, "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::string kGemm =
    R"({"kind": "gemm", "precision": "bf16", "m": 2, "n": 3, "k": 4, "median_s": 12.5e-6})";

TEST(Profile, ReadAndFound) {
  const OperatorProfile profile = read_profile_json(with_operators(kGemm), "p.json");
  Operator op;
  op.kind = OperatorKind::kGemm;
  op.m = 2;
  op.n = 3;
  op.k = 4;
  const auto found = profile.find(key_of(op, Precision::kBf16));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (TimeDistribution{Time::ns(12'500), Time(), 1}));
  EXPECT_FALSE(profile.find(key_of(op, Precision::kFp16)));
  op.m = 3;
  op.n = 2;  // the transpose is another product
  EXPECT_FALSE(profile.find(key_of(op, Precision::kBf16)));
}

TEST(Profile, RoundTripOfEveryKind) {
  OperatorProfile profile{"H100", "550.54", {{"cublasLt", "12.4"}}, {}};
  Operator op;
  op.m = op.n = op.k = op.groups = 8;
  op.batch = op.heads = op.kv_heads = op.queries = op.keys = op.head_dim = op.value_dim = 16;
  op.causal = true;
  op.bytes = 1e15;
  std::int64_t ps = 1;
  for (const OperatorKind kind : {OperatorKind::kGemm, OperatorKind::kGroupedGemm,
                                  OperatorKind::kAttention, OperatorKind::kMemory}) {
    op.kind = kind;
    ps = ps * 4999 + 1;
    profile.times[key_of(op, Precision::kFp8)] = {Time::ps(ps), Time::ps(ps / 10), 50};
  }
  EXPECT_EQ(profile.times.size(), 4U);
  EXPECT_EQ(read_profile_json(to_profile_json(profile), "p.json"), profile);
}

TEST(Profile, Refused) {
  EXPECT_THAT(error_of(R"({"schema": "lockstep-profile/2"})"), HasSubstr("lockstep-profile/1"));
  EXPECT_THAT(error_of(with_operators(kGemm + "," + kGemm)), HasSubstr("operators[1]"));
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kGemm;
    return error_of(with_operators(text.replace(text.find(from), from.size(), to)));
  };
  EXPECT_THAT(changed("gemm", "gemmm"), HasSubstr("grouped-gemm"));
  EXPECT_THAT(changed("bf16", "bf8"), HasSubstr("fp8"));
  EXPECT_THAT(changed("12.5e-6", "-1"), HasSubstr("operators[0].median_s"));
  EXPECT_THAT(changed("12.5e-6", "4000"), HasSubstr("seconds from 0 to 3600"));
  EXPECT_THAT(changed("12.5e-6", "\"12us\""), HasSubstr("operators[0].median_s"));
  EXPECT_THAT(changed("\"m\": 2", "\"m\": 0"), HasSubstr("operators[0].m"));
  EXPECT_THAT(changed("\"m\": 2", "\"l\": 2"), HasSubstr("operators[0]"));
  EXPECT_THAT(changed("\"m\": 2", "\"m\": 2, \"heads\": 2"), HasSubstr("heads"));
}

}  // namespace
}  // namespace lockstep::compute_profile_test
