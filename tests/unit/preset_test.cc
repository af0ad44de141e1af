// Files of fabrics: NVLinks that do not join a server's GPUs alike.
#include "analysis/compare/preset.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep::compare::preset_test {
namespace {

using ::testing::HasSubstr;

/// Three GPUs of 40 GB/s, two links each in a row: 0 - 1 - 2 with two links between neighbours but
/// for what `nvlinks` says.
std::string file(const std::string& nvlinks, const std::string& more = "\"nvswitch\": false") {
  return R"({"schema": "lockstep-fabric/1", "name": "x", "gpu": "V100", "gpus_per_server": 3,
             "nvlink_Bps": 4e10, "nvlinks": )" +
         nvlinks + R"(, "nic_Bps": 1e10, "nics_per_server": 1, "rates": {"floor_s": 1e-6,
             "local_efficiency": 1, "local_overlap": 1, "local_ring_overlap": 1}, )" +
         more + "}";
}

const char* const kTriangle = "[[0, 1, 1], [1, 0, 1], [1, 1, 0]]";

double seconds(const Preset& preset, CommType op, std::int32_t ranks, std::int64_t bytes) {
  const NcclTask task{.op = op, .bytes = Bytes(bytes), .ranks = ranks, .servers = 1, .wishes = {}};
  return nccl_time(task, preset.system).wire_us * 1e-6;
}

std::string error_of(const std::string& text) {
  try {
    read_preset(text, "x.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A GPU has two links of 20 GB/s. All three have a ring each way; two have one over their one link.
TEST(UnlikeLinks, CarryAsManyRings) {
  const Preset preset = read_preset(file(kTriangle), "x.json");
  EXPECT_EQ(preset.system.nvlinks.rings, (std::vector<std::int32_t>{0, 0, 1, 2}));
  const std::int64_t gb = 1'000'000'000;
  EXPECT_NEAR(seconds(preset, CommType::kAllReduce, 3, gb), 4.0 / 3 / 40, 1e-6);
  EXPECT_NEAR(seconds(preset, CommType::kAllReduce, 2, gb), 1.0 / 20, 1e-6);
  EXPECT_EQ(
      nccl_choice_on(
          {.op = CommType::kAllReduce, .bytes = Bytes(gb), .ranks = 3, .servers = 1, .wishes = {}},
          preset.system)
          .channels,
      4);
}

// GPU 0 sends a third to each over a link. Without a link to GPU 2 that goes over the host's bus of
// 12 GB/s.
TEST(UnlikeLinks, PairsHaveTheirOwn) {
  const std::int64_t gb = 1'000'000'000;
  EXPECT_NEAR(seconds(read_preset(file(kTriangle), "x"), CommType::kAllToAll, 3, gb), 1.0 / 3 / 20,
              1e-6);
  const Preset row = read_preset(file("[[0, 2, 0], [2, 0, 2], [0, 2, 0]]"), "x");
  EXPECT_NEAR(seconds(row, CommType::kAllToAll, 3, gb), 1.0 / 3 / 12, 1e-6);
  EXPECT_NEAR(seconds(row, CommType::kSendRecv, 3, gb), 1.0 / 12, 1e-6);
}

TEST(UnlikeLinks, AreWrittenAsTheyWereRead) {
  const Preset preset = read_preset(file(kTriangle), "x.json");
  const Preset again = read_preset(to_json_text(preset), "y.json");
  EXPECT_EQ(again.system.nvlinks, preset.system.nvlinks);
}

TEST(UnlikeLinks, WrongOnesAreRefused) {
  EXPECT_THAT(error_of(file("[[0, 1, 1], [1, 0, 1]]")), HasSubstr("another number of rows"));
  EXPECT_THAT(error_of(file("[[0, 1], [1, 0], [1, 1]]")), HasSubstr("another number of GPUs"));
  EXPECT_THAT(error_of(file("[[0, 1, 1], [2, 0, 1], [1, 1, 0]]")),
              HasSubstr("links of GPU 0 to 1"));
  EXPECT_THAT(error_of(file("[[1, 1, 1], [1, 0, 1], [1, 1, 0]]")),
              HasSubstr("links of GPU 0 to 0"));
  EXPECT_THAT(error_of(file("[[0, 0, 0], [0, 0, 0], [0, 0, 0]]")), HasSubstr("no link"));
  EXPECT_THAT(error_of(file(kTriangle, "\"nvswitch\": true")), HasSubstr("without switches"));
  EXPECT_THAT(error_of(file("[[0, -1, 1], [-1, 0, 1], [1, 1, 0]]")), HasSubstr("0 to 64"));
  EXPECT_THAT(error_of(file("7")), HasSubstr("nvlinks"));
}

// A DGX-1V has six rings of a link each: 16/8 · 7/8 GiB at 22.2 GB/s.
TEST(UnlikeLinks, OfADgx1V) {
  const Preset preset = preset_named("dgx-v100");
  EXPECT_EQ(preset.system.nvlinks.rings, (std::vector<std::int32_t>{0, 0, 1, 2, 4, 2, 2, 4, 6}));
  EXPECT_NEAR(seconds(preset, CommType::kAllReduce, 8, 1 << 30), 1.75 * (1 << 30) / (6 * 22.2e9),
              1e-5);
}

}  // namespace
}  // namespace lockstep::compare::preset_test
