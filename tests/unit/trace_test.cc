// Readers and writers of traces and of the meta file.
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/run.h"
#include "tests/support/sanitized.h"
#include "trace/column_table.h"
#include "trace/job_meta.h"
#include "trace/read_trace.h"
#include "trace/trace_columns.h"

namespace lockstep::trace_test {
namespace {

using lockstep::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ScratchFolder;

constexpr const char* kHead =
    "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";

Trace read_csv(const std::string& text) {
  Trace all;
  read_trace_csv(text, "t.csv", [&](Trace&& rows) { all = std::move(rows); });
  return all;
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

/// A table of two rows of a trace, any of whose columns a test may replace by one of another type.
class TraceTable {
 public:
  TraceTable() {
    for (const char* name : {"dp_rank", "stage", "rank", "step", "seq_id", "mc", "mb_id", "gmc"}) {
      set(name, ColumnTable::Cells<std::int64_t>{0, 0});
    }
    set("optype", ColumnTable::Cells<std::string>{"forward-compute", "backward-compute"});
    set("start_ts", ColumnTable::Cells<double>{0, 0.5});
    set("duration", ColumnTable::Cells<double>{0.5, 0.25});
  }

  template <class T>
  TraceTable& set(const std::string& name, const ColumnTable::Cells<T>& cells) {
    drop(name);
    table_.columns.push_back({name, cells});
    return *this;
  }
  TraceTable& drop(const std::string& name) {
    std::erase_if(table_.columns, [&](const auto& column) { return column.name == name; });
    return *this;
  }

  /// What reading it as .csv or .parquet gives.
  Trace read(const std::string& ending, Warnings* warnings = nullptr) const {
    const ScratchFolder scratch;
    write_file(scratch / ("t." + ending), ending == "csv" ? to_csv(table_) : to_parquet(table_));
    return read_trace(scratch / ("t." + ending), warnings);
  }
  std::string error(const std::string& ending) const {
    return error_of([&] { read(ending); });
  }

 private:
  ColumnTable table_;
};

using Whole = ColumnTable::Cells<std::int64_t>;
using Real = ColumnTable::Cells<double>;
using Text = ColumnTable::Cells<std::string>;

std::vector<std::string> endings() {
  return has_parquet() ? std::vector<std::string>{"csv", "parquet"}
                       : std::vector<std::string>{"csv"};
}

TEST(TraceColumns, EveryOneIsNeeded) {
  for (const std::string& ending : endings()) {
    EXPECT_EQ(TraceTable().read(ending).size(), 2U);
    for (const std::string_view name : kTraceColumns) {
      EXPECT_THAT(TraceTable().drop(std::string(name)).error(ending),
                  HasSubstr("t." + ending + ": no column " + std::string(name)));
    }
  }
}

TEST(TraceColumns, AMissingValueIsAnError) {
  for (const std::string& ending : endings()) {
    for (const char* name : {"dp_rank", "stage", "rank", "step", "seq_id"}) {
      const std::string error = TraceTable().set(name, Whole{0, std::nullopt}).error(ending);
      EXPECT_THAT(error, HasSubstr("the value is missing"));
      EXPECT_THAT(error, HasSubstr(name));
    }
    for (const char* name : {"start_ts", "duration"}) {
      EXPECT_THAT(TraceTable().set(name, Real{0, std::nullopt}).error(ending),
                  HasSubstr("the value is missing"));
    }
    EXPECT_THAT(TraceTable().set("optype", Text{"gc", std::nullopt}).error(ending),
                HasSubstr(ending == "csv" ? "unknown optype ''" : "row 2: the value is missing"));
  }
}

TEST(TraceColumns, TimesAreNumbersAndDurationsNotNegative) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const std::string& ending : endings()) {
    for (const char* name : {"start_ts", "duration"}) {
      for (const double wrong : {kNan, kInfinity, 1e39}) {
        const std::string error = TraceTable().set(name, Real{0, wrong}).error(ending);
        EXPECT_THAT(error, HasSubstr(name));
        EXPECT_THAT(error, HasSubstr("expected: seconds")) << wrong;
      }
      EXPECT_THAT(
          TraceTable().set(name, Text{"0", "soon"}).error(ending),
          HasSubstr(ending == "csv" ? "'soon' is no such value" : "the column is of type string"));
    }
    EXPECT_THAT(TraceTable().set("duration", Real{0, -0.5}).error(ending),
                HasSubstr("row 2: -0.5 is negative"));
    EXPECT_EQ(TraceTable().set("start_ts", Real{0, -0.5}).error(ending), "no error");
  }
}

TEST(TraceColumns, WholeNumbersOfTheRightKind) {
  for (const std::string& ending : endings()) {
    const bool csv = ending == "csv";
    EXPECT_THAT(TraceTable().set("rank", Text{"0", "one"}).error(ending),
                HasSubstr(csv ? "'one' is no such value" : "the column is of type string"));
    EXPECT_THAT(TraceTable().set("rank", Real{0, 2.5}).error(ending),
                HasSubstr(csv ? "t.csv:3: rank: '2.5' is" : "rank: row 2: 2.5 is no such value"));
    EXPECT_THAT(
        TraceTable().set("rank", Whole{0, 5'000'000'000}).error(ending),
        HasSubstr(csv ? "'5000000000' is no such value" : "row 2: 5000000000 is no such value"));
    EXPECT_THAT(TraceTable().set("rank", Real{0, 1e300}).error(ending), HasSubstr("rank"));
    EXPECT_THAT(TraceTable().set("dp_rank", Whole{0, -1}).error(ending),
                HasSubstr("row 2: -1 is out of range"));
    EXPECT_THAT(TraceTable().set("step", ColumnTable::Cells<bool>{true, false}).error(ending),
                HasSubstr(csv ? "'true' is no such value" : "the column is of type bool"));
    EXPECT_THAT(TraceTable().set("optype", Whole{3, 4}).error(ending),
                HasSubstr(csv ? "unknown optype '3'" : "the column is of type int64"));
  }
}

/// As a table of pandas has them that once lacked values.
TEST(TraceColumns, WholeNumbersWithAPointAndAbsentOnesAreCounted) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const std::string& ending : endings()) {
    Warnings warnings;
    const Trace trace = TraceTable()
                            .set("rank", Real{3, 4})
                            .set("step", Real{1e15, 7})
                            .set("mc", Real{1, kNan})
                            .set("mb_id", Whole{std::nullopt, 2})
                            .set("gmc", Real{std::nullopt, std::nullopt})
                            .set("duration", Real{0.1, 0.25})
                            .read(ending, &warnings);
    EXPECT_EQ(trace.rank, (std::vector<std::int32_t>{3, 4}));
    EXPECT_EQ(trace.step, (std::vector<std::int64_t>{1'000'000'000'000'000, 7}));
    EXPECT_EQ(trace.mc, (std::vector<std::int32_t>{1, -1}));
    EXPECT_EQ(trace.mb_id, (std::vector<std::int32_t>{-1, 2}));
    EXPECT_EQ(trace.gmc, (std::vector<std::int32_t>{-1, -1}));
    std::string told;
    for (const Warnings::Entry& entry : warnings.entries()) {
      told += entry.text + "\n";
    }
    EXPECT_THAT(told, HasSubstr("4 missing values of mc, mb_id and gmc taken as -1"));
    if (ending == "parquet") {
      EXPECT_THAT(told, HasSubstr("5 whole numbers read from floating-point ones"));
      EXPECT_THAT(told, HasSubstr(": 1 times of 64 bits rounded to 32"));
    }
  }
  Warnings warnings;
  const std::string line = "0,0,1.0,2.0,forward-compute,0,1,0,0,0,0\n";
  Trace rows;
  read_trace_csv(
      kHead + line, "t.csv", [&](Trace&& chunk) { rows = std::move(chunk); }, &warnings);
  EXPECT_EQ(rows.rank.front(), 1);
  ASSERT_EQ(warnings.entries().size(), 1U);
  EXPECT_EQ(warnings.entries()[0].text, "t.csv: 2 whole numbers read from floating-point ones");
}

/// Files of many rows are read by several threads.
TEST(TraceParquet, ManyRowsComeInTheirOrder) {
  if (!has_parquet()) {
    GTEST_SKIP() << "this build has no Arrow";
  }
  const std::size_t count = testing::is_sanitized() ? 1'500'000 : 4'500'000;
  Trace trace;
  trace.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    trace.step[i] = static_cast<std::int64_t>(i / 1000);
    trace.seq_id[i] = static_cast<std::int32_t>(i % 1000);
  }
  const ScratchFolder scratch;
  write_trace(trace, scratch / "t.parquet");
  std::size_t row = 0;
  bool in_order = true;
  read_trace(scratch / "t.parquet", [&](Trace&& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i, ++row) {
      in_order = in_order && rows.step[i] == trace.step[row] && rows.seq_id[i] == trace.seq_id[row];
    }
  });
  EXPECT_EQ(row, count);
  EXPECT_TRUE(in_order);
  // The first of two errors is told, with its row.
  const std::size_t wrong = count / 3 * 2;
  trace.duration_s[wrong] = -1;
  trace.duration_s[count - 100'000] = -1;
  write_trace(trace, scratch / "t.parquet");
  EXPECT_THAT(error_of([&] { read_trace(scratch / "t.parquet"); }),
              HasSubstr(fmt::format("row {}: -1 is negative", wrong + 1)));
  // Who has seen enough stops the reading.
  EXPECT_THAT(
      error_of([&] { read_trace(scratch / "t.parquet", [](Trace&&) { throw Error("enough"); }); }),
      HasSubstr("enough"));
}

TEST(Trace, AnUnknownEnding) {
  EXPECT_THAT(error_of([] { read_trace("t.txt"); }), HasSubstr(".parquet, .csv or .csv.gz"));
}

TEST(JobMeta, ComesBackAsItWent) {
  const JobMeta meta{.trial_name = "a b", .run_id = 3, .dp_size = 4, .tp_size = 2, .world_size = 8};
  EXPECT_EQ(read_job_meta(to_yaml_text(meta), "m.yaml"), meta);
  EXPECT_THAT(to_yaml_text(meta), ::testing::Not(HasSubstr("gathers_in_passes")));
  JobMeta sharded = meta;
  sharded.gathers_in_passes = 2;
  EXPECT_EQ(read_job_meta(to_yaml_text(sharded), "m.yaml"), sharded);
  EXPECT_THAT(to_yaml_text(meta), ::testing::Not(HasSubstr("gradients_behind_gc")));
  JobMeta split = meta;
  split.gradients_behind_gc = 1;
  split.clips_in_replicas = 1;
  EXPECT_EQ(read_job_meta(to_yaml_text(split), "m.yaml"), split);
}

TEST(TraceCsv, TimesThatNoRunHasAreRefused) {
  const auto of = [](const std::string& times) {
    return error_of([&] {
      read_csv(std::string(kHead) + "0,0,0,0,forward-compute,0,1,0,0,0,0\n" +
               "0,0,0,0,forward-compute," + times + ",1,0,1,0\n");
    });
  };
  EXPECT_THAT(of("1e308,1"), AllOf(HasSubstr("t.csv:3"), HasSubstr("start_ts")));
  EXPECT_THAT(of("1e38,1"), AllOf(HasSubstr("t.csv: start_ts: row 2: 1e+38 s are too long")));
  EXPECT_THAT(of("1,1e7"), AllOf(HasSubstr("t.csv: duration: row 2"), HasSubstr("106 days")));
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
  const std::string deep = "trial_name: a\ndp_size: " + std::string(100'000, '[');
  EXPECT_THAT(of(deep.c_str()), AllOf(HasSubstr("m.yaml:2:"), HasSubstr("too deep"),
                                      HasSubstr("less than 500 levels")));
  EXPECT_THAT(of("trial_name: a\ndp_size: 4\nworld_size: 4\ngathers_in_passes: 3\n"),
              HasSubstr("gathers_in_passes: 3 dp_ranks in a row do not divide 4"));
  EXPECT_THAT(of("trial_name: a\ngradients_behind_gc: 2\n"),
              HasSubstr("gradients_behind_gc: 2 is neither 0 nor 1"));
  EXPECT_THAT(of("trial_name: a\nclips_in_replicas: 2\n"),
              HasSubstr("clips_in_replicas: 2 is neither 0 nor 1"));
  EXPECT_EQ(of("trial_name: a\ncluster: north\n"), "no error");
}

}  // namespace
}  // namespace lockstep::trace_test
