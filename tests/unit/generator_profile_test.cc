// AIOB compute-time files with AICB's exact parsing, and DeepSpeed logs.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "generator/compute_profile.h"
#include "generator/deepspeed_log.h"

namespace lockstep::generator_profile_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pass = ComputeProfile::Pass;

constexpr const char* kFile =
    "train_iter:1\n"
    "Emb:\n    time_gpu_max: 9\n    time_gpu_min: 7\n    time_gpu_avg: 8\n"
    "layernorm:\n    time_gpu_avg: 1.5\n"
    "atten_qkv:\n    time_gpu_avg: 10\n"
    "atten_flash:\n    time_gpu_avg: 20\n"
    "layernorm2:\n    time_gpu_avg: 2\n"
    "mlp_linear_1:\n    time_gpu_avg: 30\n"
    "param_time:\n    time_gpu_min: 4\n    time_gpu_avg: 5\n";

// attention = 1.5 + 10 + 20 us, with recompute 20 us more; mlp = 2 + 30.
TEST(ComputeProfile, SumsOfSections) {
  const ComputeProfile profile = ComputeProfile::from_aiob(kFile, false);
  EXPECT_EQ(profile.layer_time("attention_column", Pass::kForward), 31500);
  EXPECT_EQ(profile.layer_time("mlp_row", Pass::kBackward), 32000);
  EXPECT_EQ(profile.layer_time("final_column", Pass::kForward), 31500);
  EXPECT_EQ(profile.embedding_time(), 8000);
  EXPECT_EQ(profile.grad_time(Pass::kForward), 4000);
  EXPECT_EQ(profile.grad_time(Pass::kBackward), 5000);
  EXPECT_EQ(profile.layer_time("unheard_of", Pass::kForward), 1);
  EXPECT_EQ(ComputeProfile::from_aiob(kFile, true).layer_time("attention_row", Pass::kForward),
            51500);
}

TEST(ComputeProfile, AnEntryOfTheLayersOwnName) {
  const ComputeProfile profile = ComputeProfile::from_aiob(
      "final_column:\n time_gpu_avg: 0.001\nattention_q_column:\n time_gpu_avg: 3\n"
      "embedding_layer:\n time_gpu_avg: 6\n",
      false);
  EXPECT_EQ(profile.layer_time("final_column", Pass::kForward), 3000);  // 1 counts as missing
  EXPECT_EQ(profile.layer_time("attention_q_column", Pass::kForward), 3000);
  EXPECT_EQ(profile.layer_time("attention_o_row", Pass::kForward), 0);  // listed as 0 when absent
  EXPECT_EQ(profile.embedding_time(), 1);                               // that section is ignored
}

TEST(ComputeProfile, WhatCountsAsANumber) {
  const auto value = [](const std::string& text) {
    return ComputeProfile::from_aiob("Emb:\n " + text + "\n", false).find("Emb");
  };
  EXPECT_EQ(value("time_gpu_avg: 1e-05"), 1000);
  EXPECT_EQ(value("x time_gpu_avg:\t2.5x"), 2500);
  EXPECT_EQ(value("time_gpu_avg: 3."), 3000);
  EXPECT_EQ(value("time_gpu_avg: .5"), std::nullopt);
  EXPECT_EQ(value("time_gpu_avg:3"), std::nullopt);
  EXPECT_EQ(value("time_gpu_avg: -3"), std::nullopt);
  EXPECT_EQ(value("time_gpu_avg: 0.0005"), 0);  // half to even
  EXPECT_EQ(value("time_gpu_avg: 0.0015"), 2);
  EXPECT_EQ(value("time_gpu_avg: 1\n time_gpu_avg: 2"), 2000);  // the last one
}

// What is passed over, as AICB does, is told: else a cut or negative time is none without a word.
TEST(ComputeProfile, TimesThatAreNotTakenAsTheyStandAreWarnedOf) {
  const auto warned = [](const std::string& text) {
    Warnings warnings;
    warn_of_aiob_times(text, warnings);
    std::vector<std::string> texts;
    for (const Warnings::Entry& entry : warnings.entries()) {
      texts.push_back(entry.text);
    }
    return texts;
  };
  EXPECT_TRUE(
      warned("a:\n    time_gpu_avg: 12.5\n    time_gpu_min: 3\r\n time_gpu_max: 4 us\n").empty());
  EXPECT_EQ(warned("a:\n time_gpu_avg: -5.0\n"),
            std::vector<std::string>{"line 2: AICB takes 'time_gpu_avg: -5.0' as no time"});
  EXPECT_EQ(warned("a:\n time_gpu_avg: 1.5e+06\n"),
            std::vector<std::string>{"line 2: AICB takes 'time_gpu_avg: 1.5e+06' as 1.5 us"});
  EXPECT_EQ(warned("time_gpu_a"),
            std::vector<std::string>{"line 1: AICB takes 'time_gpu_a' as no time"});
}

// Python's text mode ends lines at CR, LF and CR LF; a key at one line's end has no value in the
// next line.
TEST(ComputeProfile, LinesEndAsInPython) {
  for (const char* text : {"Emb:\r time_gpu_avg: 7\rmlp_a:\r time_gpu_avg: 2\r",
                           "Emb:\r\n time_gpu_avg: 7\r\nmlp_a:\r\n time_gpu_avg: 2\r\n",
                           "Emb:\n time_gpu_avg: 7\rmlp_a:\n time_gpu_avg:\r4\r time_gpu_avg: 2"}) {
    const ComputeProfile profile = ComputeProfile::from_aiob(text, false);
    EXPECT_EQ(profile.find("Emb"), 7000) << text;
    EXPECT_EQ(profile.find("mlp_forward"), 2000) << text;
  }
  Warnings warnings;
  warn_of_aiob_times("a:\r time_gpu_avg: -5\r", warnings);
  ASSERT_EQ(warnings.entries().size(), 1U);
  EXPECT_EQ(warnings.entries()[0].text, "line 2: AICB takes 'time_gpu_avg: -5' as no time");
}

// AICB's pattern wants a word at a line's begin, and a byte order mark is none: the first section
// is lost, with its times.
TEST(ComputeProfile, AByteOrderMarkHidesASection) {
  const std::string path = ::testing::TempDir() + "/marked.txt";
  write_file(path,
             "\xEF\xBB\xBF"
             "Emb:\n    time_gpu_avg: 4\nmlp_a:\n    time_gpu_avg: 2\n");
  Warnings warnings;
  const ComputeProfile profile = ComputeProfile::read_aiob(path, false, warnings);
  EXPECT_EQ(profile.find("Emb"), std::nullopt);
  EXPECT_EQ(profile.find("mlp_forward"), 2000);
  ASSERT_EQ(warnings.entries().size(), 1U);
  EXPECT_EQ(warnings.entries()[0].text,
            "line 1: AICB takes 'Emb' as no section: a byte order mark stands before it");
}

TEST(ComputeProfile, RepeatedLinesOfAttentionAddUp) {
  EXPECT_EQ(ComputeProfile::from_aiob("atten_a:\n time_gpu_avg: 7\n time_gpu_avg: 8\n", false)
                .find("attention_forward"),
            15000);
}

TEST(ComputeProfile, NothingIsNoError) {
  EXPECT_EQ(ComputeProfile::from_aiob("", false).find("mlp_forward"), 0);
  EXPECT_EQ(ComputeProfile::from_aiob(" time_gpu_avg: 5\n", false).find("mlp_forward"), 0);
  // At the beginning of a line the key itself is a section.
  EXPECT_EQ(ComputeProfile::from_aiob("mlp:\ntime_gpu_avg: 5\n", false).find("mlp_forward"), 0);
  EXPECT_THROW(ComputeProfile::from_aiob("mlp:\n time_gpu_avg: 99999999999999999999\n", false),
               Error);
}

TEST(ComputeProfile, AFileOfAiobWithoutTimesIsWarnedOf) {
  const std::string path = ::testing::TempDir() + "/no-times.txt";
  write_file(path, "train_iter:1\nEmb:\n    time_gpu_max: 3\n");
  Warnings warnings;
  const ComputeProfile profile = ComputeProfile::read_aiob(path, false, warnings);
  EXPECT_EQ(profile.layer_time("attention_layer", Pass::kForward), 0);
  EXPECT_EQ(profile.layer_time("embedding_layer", Pass::kForward), 1);
  ASSERT_EQ(warnings.entries().size(), 1U);
  EXPECT_THAT(warnings.entries()[0].text, HasSubstr("no section has a time_gpu_avg"));
  for (const char* text : {"", "a: 1\nb: 2\n"}) {
    write_file(path, text);
    EXPECT_THROW(ComputeProfile::read_aiob(path, false, warnings), Error);
  }
}

std::vector<DeepSpeedLogEntry> entries_of(std::string_view log) {
  std::vector<DeepSpeedLogEntry> entries;
  read_deepspeed_log(log, "a.txt", [&](const DeepSpeedLogEntry& e) { entries.push_back(e); });
  return entries;
}

TEST(DeepSpeedLog, LinesWithAllThreeParts) {
  const std::string log =
      "[INFO] comm op: all_gather | time (ms): 1.0 | msg size: 9.77 KB | algbw (Gbps): 0.08 | b\n"
      "noise\ncomm op: all_reduce | msg size: 1 MB |\n";
  EXPECT_THAT(entries_of(log), ElementsAre(DeepSpeedLogEntry{"all_gather", "9.77 KB", "0.08"}));
  EXPECT_TRUE(entries_of("").empty());
}

TEST(DeepSpeedLog, LinesEndAsInPythonsTextMode) {
  const std::string one = "comm op: all_gather | msg size: 1 MB | algbw (Gbps): 5 | b";
  const std::string other = "comm op: broadcast | msg size: 2 MB | algbw (Gbps): 6 | b";
  for (const std::string end : {"\r", "\r\n", "\n"}) {
    EXPECT_THAT(entries_of(one + end + other),
                ElementsAre(DeepSpeedLogEntry{"all_gather", "1 MB", "5"},
                            DeepSpeedLogEntry{"broadcast", "2 MB", "6"}));
  }
}

TEST(DeepSpeedLog, PartsStandInTheirOrder) {
  EXPECT_TRUE(entries_of("msg size: 1 B | comm op: all_gather | algbw (Gbps): 5 |\n").empty());
  EXPECT_THAT(
      entries_of("algbw (Gbps): 3 | comm op: all_reduce | msg size: 7 MB | algbw (Gbps): 8 | x\n"),
      ElementsAre(DeepSpeedLogEntry{"all_reduce", "7 MB", "8"}));
}

TEST(DeepSpeedLog, AnUnknownOperationHasALine) {
  try {
    entries_of("\ncomm op: all_gater | msg size: 1 B | algbw (Gbps): 1 \n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.txt:2"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'all_gather'"));
  }
}

}  // namespace
}  // namespace lockstep::generator_profile_test
