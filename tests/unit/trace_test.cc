// Readers and writers of traces and of the meta file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "tests/support/run.h"
#include "trace/job_meta.h"
#include "trace/read_trace.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;

constexpr const char* kHead =
    "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";

Trace read_csv(const std::string& text) {
  Trace all;
  read_trace_csv(text, "t.csv", [&](Trace&& rows) { all = std::move(rows); });
  return all;
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Trace some_rows() {
  Trace trace;
  add_row(trace, {.dp_rank = 300,
                  .stage = 3,
                  .rank = 70000,
                  .step = 1LL << 40,
                  .optype = TraceOp::kSeparateGradsAllReduce,
                  .start_s = 0.1F,
                  .duration_s = 1e-7F,
                  .seq_id = 5});
  add_row(trace, {.rank = 1, .step = 7, .mc = 1, .mb_id = 2, .gmc = 3});
  return trace;
}

TEST(TraceCsv, ComesBackAsItWent) {
  const ScratchFolder scratch;
  write_trace(some_rows(), scratch / "t.csv");
  EXPECT_EQ(read_trace(scratch / "t.csv"), some_rows());
}

TEST(TraceCsv, ColumnsInAnyOrderAndFurtherOnes) {
  const Trace trace = read_csv(
      "gmc,mb_id,mc,colour,seq_id,duration,start_ts,optype,step,rank,stage,dp_rank\r\n"
      "3,2,1,red,0,0.5,0.25,\"forward-compute\",9,4,0,1\r\n\r\n");
  ASSERT_EQ(trace.size(), 1U);
  const TraceRow row = row_at(trace, 0);
  EXPECT_EQ(row.dp_rank, 1);
  EXPECT_EQ(row.rank, 4);
  EXPECT_EQ(row.step, 9);
  EXPECT_EQ(row.start_s, 0.25F);
  EXPECT_EQ(row.duration_s, 0.5F);
  EXPECT_EQ(row.gmc, 3);
}

TEST(TraceCsv, ErrorsSayWhere) {
  const auto with = [](const std::string& line) {
    return error_of([&] { read_csv(kHead + line); });
  };
  EXPECT_THAT(error_of([] { read_csv("stage,rank\n"); }), HasSubstr("no column dp_rank, step"));
  EXPECT_THAT(error_of([] { read_csv(""); }), HasSubstr("the file is empty"));
  EXPECT_THAT(with("0,0,0,1,forward-compute,0,1,0,0,0\n"), HasSubstr("t.csv:2: 10 fields"));
  EXPECT_THAT(with("0,0,0,1,forward-compute,nan,1,0,0,0,0\n"),
              HasSubstr("t.csv:2: start_ts: 'nan'"));
  EXPECT_THAT(with("0,0,0,1,forward-compute,0,-1,0,0,0,0\n"), HasSubstr("-1 is negative"));
  EXPECT_THAT(with("0,,0,1,forward-compute,0,1,0,0,0,0\n"),
              HasSubstr("stage: the value is missing"));
  EXPECT_THAT(with("0,0,0,x,forward-compute,0,1,0,0,0,0\n"), HasSubstr("step: 'x'"));
  EXPECT_THAT(with("0,0,0,1,forward-computer,0,1,0,0,0,0\n"),
              HasSubstr("did you mean forward-compute?"));
  EXPECT_THAT(with("-1,0,0,1,forward-compute,0,1,0,0,0,0\n"), HasSubstr("dp_rank: row 1: -1"));
}

/// Rows are counted over the whole file, not over what is read at a time.
TEST(TraceCsv, ABadRowFarDown) {
  std::string text = kHead;
  for (int i = 0; i < 70000; ++i) {
    text += "0,0,0,1,forward-compute,0,1,0,0,0,0\n";
  }
  text += "0,0,0,1,forward-compute,0,-1,0,0,0,0\n";
  EXPECT_THAT(error_of([&] { read_csv(text); }), HasSubstr("row 70001: -1 is negative"));
}

TEST(TraceParquet, ComesBackAsItWent) {
  if (!has_parquet()) {
    GTEST_SKIP() << "this build has no Arrow";
  }
  const ScratchFolder scratch;
  write_trace(some_rows(), scratch / "t.parquet");
  EXPECT_EQ(read_trace(scratch / "t.parquet"), some_rows());
}

TEST(TraceParquet, NoParquetFile) {
  if (!has_parquet()) {
    GTEST_SKIP() << "this build has no Arrow";
  }
  const ScratchFolder scratch;
  write_file(scratch / "t.parquet", "PAR1 or so");
  EXPECT_THAT(error_of([&] { read_trace(scratch / "t.parquet"); }),
              HasSubstr("expected: a Parquet file"));
  write_file(scratch / "e.parquet", "");
  EXPECT_THAT(error_of([&] { read_trace(scratch / "e.parquet"); }), HasSubstr("e.parquet"));
}

TEST(Trace, AnUnknownEnding) {
  EXPECT_THAT(error_of([] { read_trace("t.txt"); }), HasSubstr(".parquet or .csv"));
}

TEST(JobMeta, ComesBackAsItWent) {
  const JobMeta meta{.trial_name = "a b", .run_id = 3, .dp_size = 4, .tp_size = 2, .world_size = 8};
  EXPECT_EQ(read_job_meta(to_yaml_text(meta), "m.yaml"), meta);
}

TEST(JobMeta, ErrorsSayWhere) {
  const auto of = [](const char* text) { return error_of([&] { read_job_meta(text, "m.yaml"); }); };
  EXPECT_THAT(of("dp_size: 2\nworld_size: 2\n"), HasSubstr("trial_name: the field is missing"));
  EXPECT_THAT(of("trial_name: a\ndp_size: 2\n"), HasSubstr("1 is not dp * pp * tp * dsp"));
  EXPECT_THAT(of("trial_name: a\ndp_size: two\n"), HasSubstr("m.yaml:2: dp_size: 'two'"));
  EXPECT_THAT(of("trial_name: a\ndp_sise: 2\n"), HasSubstr("did you mean dp_size?"));
  EXPECT_THAT(of("trial_name: a/b\n"), HasSubstr("cannot be a part of file names"));
  EXPECT_THAT(of("- a\n"), HasSubstr("this is no mapping"));
  EXPECT_THAT(of("trial_name: [\n"), HasSubstr("m.yaml"));
  EXPECT_EQ(of("trial_name: a\ncluster: north\n"), "no error");
}

}  // namespace
}  // namespace lockstep
