#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "generator/compute/compute_times.h"
#include "generator/compute/profile_files.h"
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

Operator attention_of(double flops) {
  Operator op;
  op.kind = OperatorKind::kAttention;
  op.batch = 1;
  op.heads = op.kv_heads = 8;
  op.queries = op.keys = 1024;
  op.head_dim = op.value_dim = 128;
  op.causal = true;
  op.flops = flops;
  return op;
}

// 2 · 8 · 1024 · 256 operations a key, of which a query sees 512 on average.
TEST(Profile, AttentionOfAWindowIsNotTheWholeOne) {
  constexpr double kKey = 2.0 * 8 * 1024 * 256;
  const OperatorKey key = key_of(attention_of(512 * kKey), Precision::kBf16);
  OperatorProfile profile;
  profile.gpu = "H100";
  profile.times[key] = {Time::us(5000), Time(), 1};
  ComputeTimes times(gpu_spec("H100"), Precision::kBf16,
                     std::make_shared<OperatorProfile>(profile));
  EXPECT_EQ(times(attention_of(512 * kKey)), Time::us(5000));
  EXPECT_LT(times(attention_of(100 * kKey)), Time::us(1000));  // a window
  Operator gathered = attention_of(512 * kKey);                // a quarter's queries, of everywhere
  gathered.queries = 256;
  gathered.flops /= 4;
  EXPECT_FALSE(is_all_in_its_key(gathered));
  gathered.flops = 2.0 * 8 * 256 * 256 * (1024 - 128);  // the last quarter's
  EXPECT_TRUE(is_all_in_its_key(gathered));
  // Step by step it is another operator, which the file tells apart.
  Operator unfused = attention_of(1024 * kKey);
  unfused.fused = false;
  EXPECT_TRUE(is_all_in_its_key(unfused));
  EXPECT_NE(times(unfused), Time::us(5000));
  profile.times[key_of(unfused, Precision::kBf16)] = {Time::us(9000), Time(), 1};
  EXPECT_EQ(profile.times.size(), 2U);
  EXPECT_EQ(read_profile_json(to_profile_json(profile), "p.json"), profile);
}

// A norm's gradients and a sum of as many bytes take their own times; a row without work is of any.
TEST(Profile, BytesOfOtherWorkAreAnotherOperator) {
  Operator op;
  op.bytes = 4096;
  op.backward = true;
  op.memory_work = MemoryWork::kRmsNorm;
  const std::string any =
      R"({"kind": "memory", "precision": "bf16", "bytes": 4096, "median_s": 3e-6})";
  const std::string norm = R"({"kind": "memory", "precision": "bf16", "bytes": 4096,
      "work": "rms-norm", "backward": true, "median_s": 7e-6})";
  const OperatorProfile profile = read_profile_json(with_operators(any + "," + norm), "p.json");
  EXPECT_EQ(read_profile_json(to_profile_json(profile), "p.json"), profile);
  ComputeTimes times(gpu_spec("H100"), Precision::kBf16,
                     std::make_shared<OperatorProfile>(profile));
  EXPECT_EQ(times(op), Time::us(7));
  op.backward = false;
  EXPECT_EQ(times(op), Time::us(3));
  op.memory_work = MemoryWork::kStream;
  EXPECT_EQ(times(op), Time::us(3));
  std::string wrong = norm;
  EXPECT_THAT(error_of(with_operators(wrong.replace(wrong.find("rms"), 3, "rmx"))),
              HasSubstr("operators[0].work: unknown work 'rmx-norm'"));
}

// Files and folders as one; of an operator in several the first one's time counts.
TEST(Profile, SeveralFilesAreOne) {
  const auto of = [](const std::string& gpu, std::int64_t m, int us) {
    OperatorProfile profile;
    profile.gpu = gpu;
    OperatorKey key;
    key.kind = OperatorKind::kGemm;
    key.sizes = {m, 64, 32};
    profile.times[key] = {Time::us(us), Time(), 1};
    return to_profile_json(profile);
  };
  const std::filesystem::path folder = ::testing::TempDir() + "profile-files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "b");
  const auto path = [&](const char* name) { return (folder / name).string(); };
  write_file(path("b/two.profile.json"), of("H100", 2, 20));
  write_file(path("b/notes.json"), "{}");
  write_file(path("a.profile.json"), of("H100", 1, 10));
  write_file(path("c.profile.json"), of("H100", 1, 11));
  write_file(path("d,e.json"), of("H100", 1, 12));
  write_file(path("h200.json"), of("H200", 3, 30));
  const auto first = [](const OperatorProfile& profile) {
    return profile.times.begin()->second.median;
  };
  const OperatorProfile all = read_profile_files(folder.string());
  EXPECT_EQ(all.times.size(), 2U);
  EXPECT_EQ(first(all), Time::us(10));
  EXPECT_EQ(first(read_profile_files(path("c.profile.json") + "," + folder.string())),
            Time::us(11));
  EXPECT_EQ(first(read_profile_files(path("d,e.json"))), Time::us(12));
  const auto error = [](const std::string& names) {
    try {
      read_profile_files(names);
    } catch (const Error& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  EXPECT_NE(error(path("a.profile.json") + "," + path("h200.json"))
                .find("h200.json: gpu: measured on 'H200'"),
            std::string::npos);
  EXPECT_NE(error(path("a.profile.json") + ",").find("--profile: an empty name"),
            std::string::npos);
  std::filesystem::create_directories(folder / "none");
  EXPECT_NE(error(path("none")).find("there is no profile in it"), std::string::npos);
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
