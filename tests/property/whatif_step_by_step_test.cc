// A what-if trace that is read step by step, against the same one read whole.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/whatif/load_job.h"
#include "base/error.h"
#include "base/rng.h"
#include "tests/support/made_up_steps.h"
#include "trace/read_trace.h"

namespace lockstep::whatif::whatif_step_by_step_test {
namespace {

using ::testing::HasSubstr;
using testing::play;
using testing::uniform;

/// A trace that is taken in step by step gives the same table, whatever the order of the steps and
/// of the rows within them.
class StepByStep : public ::testing::Test {
 protected:
  StepByStep() : trace(play({.dp = 2, .stages = 2, .microbatches = 3, .steps = 4}, uniform)) {}

  /// The rows of the given steps one after the other, each step's in another order.
  std::string file_of(const std::vector<std::int64_t>& steps) {
    Trace out;
    Rng rng(1, "rows");
    for (const std::int64_t step : steps) {
      std::vector<std::size_t> rows;
      for (std::size_t i = 0; i < trace.size(); ++i) {
        if (trace.step[i] == step) {
          rows.push_back(i);
        }
      }
      for (std::size_t i = rows.size(); i > 1; --i) {
        std::swap(rows[i - 1], rows[rng.next() % i]);
      }
      for (const std::size_t row : rows) {
        add_row(out, row_at(trace, row));
        if (!trace.extra.alone_s.empty()) {
          out.extra.bytes.push_back(0);
          out.extra.group.emplace_back();
          for (auto* of : {&out.extra.tp_rank, &out.extra.cp_rank, &out.extra.ep_rank}) {
            of->push_back(0);
          }
          out.extra.alone_s.push_back(trace.extra.alone_s[row]);
          out.extra.undisturbed_s.push_back(trace.extra.undisturbed_s[row]);
        }
      }
    }
    const std::string path = ::testing::TempDir() + "/steps.csv";
    write_trace(out, path);
    return path;
  }

  Trace trace;
  Warnings warnings;
};

TEST_F(StepByStep, GivesTheSameTable) {
  const std::vector<StepRange> some = {{1, 1}, {3, 3}};
  for (const auto& [ranges, told] :
       {std::pair(std::vector<StepRange>{}, false), std::pair(some, false),
        std::pair(std::vector<StepRange>{}, true)}) {
    if (told) {
      trace.extra.alone_s = trace.extra.undisturbed_s = trace.duration_s;
    }
    const std::string path = file_of({3, 1, 4, 2});
    const LoadedJob whole = load_job({&path, 1}, {.steps = ranges}, &warnings);
    const LoadedJob streamed = load_job({&path, 1}, {.steps = ranges, .most_rows = 10}, &warnings);
    EXPECT_GT(whole.trace.size(), 0U);
    EXPECT_EQ(streamed.trace.size(), 0U);
    EXPECT_EQ(streamed.table.steps, whole.table.steps);
    EXPECT_EQ(streamed.table.ranks, whole.table.ranks);
    EXPECT_EQ(streamed.table.start_s, whole.table.start_s);
    EXPECT_EQ(streamed.table.duration_s, whole.table.duration_s);
    EXPECT_EQ(whole.table.undisturbed_s.empty(), !told);
    EXPECT_EQ(streamed.table.alone_s, whole.table.alone_s);
    EXPECT_EQ(streamed.table.undisturbed_s, whole.table.undisturbed_s);
    ASSERT_EQ(streamed.table.nodes.size(), whole.table.nodes.size());
    for (std::size_t n = 0; n < whole.table.nodes.size(); ++n) {
      EXPECT_EQ(to_text(streamed.table.nodes[n]), to_text(whole.table.nodes[n]));
      EXPECT_EQ(streamed.table.nodes[n].start_s, whole.table.nodes[n].start_s);
      EXPECT_EQ(streamed.table.nodes[n].microbatch, whole.table.nodes[n].microbatch);
    }
  }
}

// A file without a column among files that have it: none has it then.
TEST_F(StepByStep, FilesMayLackAColumn) {
  Trace rows = trace, all;
  rows.extra.alone_s = rows.duration_s;
  append_rows(all, rows, 0, 20);
  append_rows(all, trace, 20, 40);
  append_rows(all, all, 30, 40);
  EXPECT_EQ(all.size(), 50U);
  EXPECT_EQ(all.extra.alone_s.size(), 20U);
}

TEST_F(StepByStep, SeveralFilesAreOneTrace) {
  const std::string whole_path = file_of({1, 2, 3, 4});
  const LoadedJob whole = load_job({&whole_path, 1}, {}, &warnings);
  std::vector<std::string> parts;
  for (const std::int64_t step : {3, 1, 2, 4}) {
    parts.push_back(::testing::TempDir() + "/part" + std::to_string(step) + ".csv");
    std::filesystem::rename(file_of({step}), parts.back());
  }
  for (const std::size_t most_rows : {10U, 100000U}) {
    const LoadedJob together = load_job(parts, {.most_rows = most_rows}, &warnings);
    EXPECT_EQ(together.table.steps, whole.table.steps);
    EXPECT_EQ(together.table.duration_s, whole.table.duration_s);
  }
}

TEST_F(StepByStep, RefusesAStepInTwoPlaces) {
  const std::string path = file_of({1, 2, 1});
  EXPECT_THAT(
      [&] {
        load_job({&path, 1}, {.most_rows = 10}, nullptr);
      },
      ::testing::ThrowsMessage<Error>(HasSubstr("the rows of step 1 are in two places")));
}

TEST_F(StepByStep, LeavesOutAStepThatLacksAnOperationIfAsked) {
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (trace.step[i] == 2 && trace.optype[i] == TraceOp::kOptimizer) {
      trace.step[i] = 9;  // which is in no file
    }
  }
  const std::string path = file_of({1, 2, 3, 4});
  EXPECT_THAT(
      [&] {
        load_job({&path, 1}, {.most_rows = 10}, nullptr);
      },
      ::testing::ThrowsMessage<Error>(HasSubstr("step 2: no optimizer 0 of stage 0")));
  const LoadedJob job =
      load_job({&path, 1}, {.drop_incomplete_steps = true, .most_rows = 10}, &warnings);
  EXPECT_EQ(job.table.steps, (std::vector<std::int64_t>{1, 3, 4}));
  EXPECT_EQ(job.table.start_s.size(), job.table.nodes.size() * 6);
}

// The first step is the model of the others only if it is complete by itself.
TEST_F(StepByStep, TheFirstStepIsLeftOutToo) {
  struct Loss {
    std::int32_t rank;
    bool all_rows;
    std::string text;
  };
  const Trace complete = trace;
  for (const Loss& loss :
       {Loss{0, false, "step 1, rank 0 (stage 0, dp_rank 0): no optimizer 0, which rank 1 has"},
        Loss{3, false, "step 1, rank 3 (stage 1, dp_rank 1): no optimizer 0"},
        Loss{0, true, "no rows of"}, Loss{3, true, "no rows of"}}) {
    trace = {};
    for (std::size_t i = 0; i < complete.size(); ++i) {
      if (complete.step[i] != 1 || complete.rank[i] != loss.rank ||
          (!loss.all_rows && complete.optype[i] != TraceOp::kOptimizer)) {
        append_rows(trace, complete, i, i + 1);
      }
    }
    const std::string path = file_of({1, 2, 3, 4});
    for (const std::size_t most_rows : {10U, 100000U}) {
      Warnings own;
      const LoadedJob job =
          load_job({&path, 1}, {.drop_incomplete_steps = true, .most_rows = most_rows}, &own);
      EXPECT_EQ(job.table.steps, (std::vector<std::int64_t>{2, 3, 4}));
      EXPECT_EQ(job.table.start_s.size(), job.table.nodes.size() * 6);
      ASSERT_EQ(own.entries().size(), 1U);
      EXPECT_THAT(own.entries()[0].text, HasSubstr("a step is left out: "));
      EXPECT_THAT(own.entries()[0].text, HasSubstr(loss.text));
    }
    const std::string first = file_of({1});
    for (const std::size_t most_rows : {10U, 100000U}) {
      if (loss.all_rows) {
        continue;  // nothing tells of the rank
      }
      EXPECT_THAT(
          [&] {
            load_job({&first, 1}, {.drop_incomplete_steps = true, .most_rows = most_rows}, nullptr);
          },
          ::testing::ThrowsMessage<Error>(HasSubstr("no step is complete: " + loss.text)));
    }
  }
}

}  // namespace
}  // namespace lockstep::whatif::whatif_step_by_step_test
