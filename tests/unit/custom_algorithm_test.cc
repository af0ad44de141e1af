#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/custom/algorithm_file.h"
#include "simulator/collectives/split.h"
#include "tests/support/shapes.h"

namespace lockstep::custom_algorithm_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::in_servers_of;

std::string data(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR) + "/tests/data/collective/" + name;
}

std::string text_of(const std::string& name) { return std::string(FileText(data(name)).view()); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

Schedule build(const std::string& text, CommType op, std::int32_t ranks, std::int64_t bytes) {
  CollectiveRequest request;
  request.op = op;
  request.bytes = Bytes(bytes);
  return parse_algorithm(text, "a.xml").build(request, in_servers_of(8, ranks));
}

/// The message of the Error that this gives.
std::string problem(const std::string& text, CommType op, std::int32_t ranks) {
  try {
    build(text, op, ranks, 1200);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

// Six sends of S/3, none of which waits.
TEST(MscclXml, AllGather) {
  const Schedule s = build(text_of("allgather3.xml"), CommType::kAllGather, 3, 1200);
  ASSERT_EQ(s.slots.size(), 6U);
  EXPECT_EQ(s.bytes(s.slots[0], 0), Bytes(400));
  EXPECT_EQ(s.chunk(s.slots[0], 0), 0);
  EXPECT_EQ(s.slots[0].destination, 1);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(s.waits(i).empty());
  }
}

// Each reduces one half: GPU 0 as it arrives, GPU 1 by another block out of scratch.
TEST(MscclXml, AllReduceThroughScratch) {
  const Schedule s = build(text_of("allreduce2.xml"), CommType::kAllReduce, 2, 1200);
  ASSERT_EQ(s.slots.size(), 4U);
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    waiting += s.waits(i).size();
  }
  EXPECT_EQ(waiting, 2U);  // the two that send sums
}

TEST(MscclXml, WhatIsWrongIsSaidWithItsLine) {
  const std::string gather = text_of("allgather3.xml"), reduce = text_of("allreduce2.xml");
  const auto gather_problem = [&](std::string_view from, std::string_view to) {
    return problem(replaced(gather, from, to), CommType::kAllGather, 3);
  };
  EXPECT_THAT(problem(gather, CommType::kAllGather, 4),
              HasSubstr("is for 3 GPUs, the group has 4"));
  EXPECT_THAT(problem(gather, CommType::kAllReduce, 3), HasSubstr("for allgather, not for"));
  EXPECT_THAT(gather_problem("s_chunks=\"0\"", "s_chunks=\"1048576\""), HasSubstr("none"));
  EXPECT_THAT(gather_problem("</algo>", ""), HasSubstr("not well-formed XML"));
  EXPECT_THAT(gather_problem("<algo", "<!DOCTYPE algo><algo"), HasSubstr("document type"));
  EXPECT_THAT(gather_problem("nchannels", "channels"), HasSubstr("has no nchannels"));
  EXPECT_THAT(gather_problem("inplace", "inpalce"), HasSubstr("unknown attribute 'inpalce'"));
  EXPECT_THAT(gather_problem("recv=\"2\"", "recv=\"3\""), HasSubstr("a.xml:4: recv"));
  EXPECT_THAT(gather_problem("dstoff=\"2\"", "dstoff=\"3\""), HasSubstr("outside a buffer of 3"));
  EXPECT_THAT(gather_problem("type=\"s\"", "type=\"q\""), HasSubstr("a.xml:5: unknown type 'q'"));
  EXPECT_THAT(gather_problem("send=\"1\"", "send=\"-1\""), HasSubstr("without that peer"));
  EXPECT_THAT(gather_problem("dstoff=\"2\"", "dstoff=\"0\""), HasSubstr("GPU 0 ends with"));
  EXPECT_THAT(gather_problem("<tb id=\"0\"", "<tb id=\"1\""), HasSubstr("tb 1 comes where 0"));
  EXPECT_THAT(gather_problem("type=\"r\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"2\"",
                             "type=\"nop\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"2\""),
              HasSubstr("sends what is never received"));
  const auto reduce_problem = [&](std::string_view from, std::string_view to) {
    return problem(replaced(reduce, from, to), CommType::kAllReduce, 2);
  };
  EXPECT_THAT(reduce_problem("srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"1\"",
                             "srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\""),
              HasSubstr("adds chunk"));
  EXPECT_THAT(reduce_problem("depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"4\""),
              HasSubstr("can never be carried out"));
  EXPECT_THAT(reduce_problem("depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"9\""),
              HasSubstr("which is not there"));
  // Without its dependency the reduction may come before what it adds, or after it is sent.
  EXPECT_THAT(reduce_problem("depid=\"0\" deps=\"1\"", "depid=\"-1\" deps=\"-1\""),
              HasSubstr("uses a chunk that is not there yet"));
}

// GPU 0's block 2 adds what block 1 receives, but waits for block 0 alone. In order of the blocks
// it has come by then.
TEST(MscclXml, AStepThatAddsWhatMayNotHaveComeIsRefused) {
  const auto step = [](int number, const char* type, const char* from, int from_at, const char* to,
                       int to_at, int block, int after) {
    return fmt::format(
        "<step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
        "cnt=\"1\" depid=\"{}\" deps=\"{}\" hasdep=\"0\"/>",
        number, type, from, from_at, to, to_at, block, after);
  };
  const auto program = [&](int waits_for) {
    std::string text =
        "<algo name=\"x\" nchannels=\"1\" nchunksperloop=\"1\" proto=\"Simple\" ngpus=\"3\" "
        "coll=\"allreduce\" inplace=\"1\">"
        "<gpu id=\"0\" i_chunks=\"1\" o_chunks=\"0\" s_chunks=\"2\">";
    for (const int b : {0, 1}) {
      text += fmt::format("<tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">", b, b + 1, b + 1) +
              step(0, "r", "i", 0, "s", b, -1, -1) + step(1, "s", "i", 0, "i", 0, 2, 1) + "</tb>";
    }
    text += "<tb id=\"2\" send=\"-1\" recv=\"-1\" chan=\"0\">" +
            step(0, "re", "s", 0, "i", 0, 0, 0) +
            step(1, "re", "s", 1, "i", 0, waits_for, waits_for < 0 ? -1 : 0) + "</tb></gpu>";
    for (const int gpu : {1, 2}) {
      text += fmt::format(
                  "<gpu id=\"{}\" i_chunks=\"1\" o_chunks=\"0\" s_chunks=\"0\"><tb id=\"0\" "
                  "send=\"0\" recv=\"0\" chan=\"0\">",
                  gpu) +
              step(0, "s", "i", 0, "i", 0, -1, -1) + step(1, "r", "i", 0, "i", 0, -1, -1) +
              "</tb></gpu>";
    }
    return text + "</algo>";
  };
  EXPECT_EQ(problem(program(1), CommType::kAllReduce, 3), "none");
  EXPECT_THAT(problem(program(-1), CommType::kAllReduce, 3),
              AllOf(HasSubstr("uses a chunk that is not there yet"),
                    HasSubstr("when block 1 of GPU 0 is late")));
}

TEST(ScheduleJson, ReadsWritesAndChecks) {
  const std::string text = text_of("reduce3.json");
  const NamedSchedule named = parse_schedule_json(text, "a.json");
  EXPECT_EQ(parse_schedule_json(to_schedule_json(named), "a.json"), named);
  const Schedule s = build(text, CommType::kAllReduce, 3, 1200);
  EXPECT_EQ(s.bytes(s.slots[2], 3), Bytes(300));
  EXPECT_THAT(problem(replaced(text, "\"lag\": 0", "\"lag\": 1"), CommType::kAllReduce, 3),
              HasSubstr("the algorithm is wrong: "));
  EXPECT_THAT(problem(replaced(text, "\"slot\": 1", "\"slot\": 4"), CommType::kAllReduce, 3),
              HasSubstr("slots[2].waits[1].slot: there is no such slot"));
  EXPECT_THAT(problem(replaced(text, "\"source\": 1", "\"source\": 3"), CommType::kAllReduce, 3),
              HasSubstr("slots[0].source"));
  EXPECT_THAT(
      problem(replaced(replaced(replaced(replaced(text, "\"count\": 4", "\"count\": 16000000"),
                                         "\"count\": 4", "\"count\": 16000000"),
                                "\"count\": 4", "\"count\": 16000000"),
                       "\"count\": 4", "\"count\": 16000000"),
              CommType::kAllReduce, 3),
      HasSubstr("too large to be proved right"));
  EXPECT_THAT(problem("algorithm", CommType::kAllReduce, 3), HasSubstr("is no algorithm"));
}

// Every algorithm of ours can be written and read.
TEST(ScheduleJson, HoldsAllOurAlgorithms) {
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    CollectiveRequest request;
    request.op = algorithm->ops.front();
    request.bytes = Bytes(1 << 20);
    const std::int32_t ranks = algorithm->name == "send" ? 2 : 6;
    NamedSchedule named{"x", algorithm->build(request, in_servers_of(3, ranks))};
    named.schedule.chunk_bytes = Bytes();
    named.schedule.nvswitch_percent = 100;
    EXPECT_EQ(parse_schedule_json(to_schedule_json(named), "a.json"), named) << algorithm->name;
  }
}

TEST(SplitFile, RowsOfSizes) {
  const Split split = read_split(data("split3.txt"), CommType::kAllToAll, 3);
  EXPECT_EQ(split.sizes.size(), 9U);
  EXPECT_EQ(split.sizes[3], Bytes(4096));
  EXPECT_EQ(split.bytes, Bytes(3 << 20));
  EXPECT_EQ(parse_split("1kB\n2kB\n3kB", "s", CommType::kAllGather, 3).bytes, Bytes(6000));
  const auto wrong = [](std::string_view text, CommType op) {
    try {
      parse_split(text, "s.txt", op, 2);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(wrong("1 2\n3\n", CommType::kAllToAll), HasSubstr("s.txt:2: a row of 1 sizes"));
  EXPECT_THAT(wrong("1 2\n", CommType::kAllToAll), HasSubstr("2 sizes for 2 ranks"));
  EXPECT_THAT(wrong("1 x\n", CommType::kAllGather), HasSubstr("s.txt:1: 'x'"));
  EXPECT_THAT(wrong("0 0\n", CommType::kAllGather), HasSubstr("nothing to send"));
  EXPECT_THAT(wrong("1 2\n", CommType::kAllReduce), HasSubstr("has no split"));
}

}  // namespace
}  // namespace lockstep::custom_algorithm_test
