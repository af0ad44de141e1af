// What joins the ranks of a step beside its passes: gradients, parameters, embeddings, the norm,
// the loss, the optimizer.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/exact/buckets.h"
#include "generator/exact/exact_workload.h"
#include "simulator/replay/straggler.h"
#include "tests/support/exact_models.h"
#include "tests/support/free_network.h"
#include "trace/trace.h"

namespace lockstep::exact_step_end_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

Time one_us(const Operator&) { return Time::us(1); }

/// GPT of 6 layers, whose head shares the embedding's table of 256 words of 64 numbers.
Job gpt_job(std::int64_t pp, std::int64_t dp) {
  Job job;
  job.model = testing::gpt(6, 64, 8, 256, 128);
  job.pp = pp;
  job.gpus = pp * dp;
  job.seq = 128;
  job.global_batch = 4 * dp;
  return job;
}

const OpTable& table_of(const Workload& workload) {
  return std::get<OpTable>(workload.jobs[0].work);
}

/// The places of a type's operations in a stage's program.
std::vector<std::int32_t> places(const OpTable& table, std::size_t stage, OpType type) {
  std::vector<std::int32_t> found;
  const std::vector<Op>& ops = table.programs[stage].ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].type == type) {
      found.push_back(static_cast<std::int32_t>(i));
    }
  }
  return found;
}

const Op& at(const OpTable& table, std::size_t stage, std::int32_t place) {
  return table.programs[stage].ops[static_cast<std::size_t>(place)];
}

const GroupFamily& family_of(const OpTable& table, const Op& op) {
  return table.groups[static_cast<std::size_t>(op.group)];
}

// First and last stage add up the gradients of the table that both hold, 256 x 64 fp32 numbers,
// when their data-parallel peers' are in it, and before its norm is taken. Stages between hold
// none.
TEST(ExactStepEnd, FirstAndLastStageAddUpTheTiedEmbedding) {
  const Workload workload = exact_workload(gpt_job(3, 2), one_us);
  const OpTable& table = table_of(workload);
  ASSERT_EQ(table.programs.size(), 3U);
  EXPECT_THAT(places(table, 1, OpType::kTiedEmbedding), IsEmpty());
  for (const std::size_t stage : {std::size_t{0}, std::size_t{2}}) {
    const std::vector<std::int32_t> tied = places(table, stage, OpType::kTiedEmbedding);
    ASSERT_EQ(tied.size(), 1U);
    const Op& op = at(table, stage, tied[0]);
    EXPECT_EQ(op.comm, CommType::kAllReduce);
    EXPECT_EQ(op.bytes, Bytes(256 * 64 * 4));
    EXPECT_THAT(family_of(table, op).members,
                ElementsAre(std::vector<std::int32_t>{0, 4}, std::vector<std::int32_t>{1, 5}));
    for (const std::int32_t reduced : places(table, stage, OpType::kReduceGradients)) {
      EXPECT_THAT(op.after, Contains(reduced));
    }
    EXPECT_THAT(at(table, stage, places(table, stage, OpType::kClip).front()).after,
                ElementsAre(tied[0]));
  }
  Job alone = gpt_job(1, 2);
  EXPECT_THAT(places(table_of(exact_workload(alone, one_us)), 0, OpType::kTiedEmbedding),
              IsEmpty());
  Job untied = gpt_job(3, 2);
  untied.model.after.back().shared = false;
  EXPECT_THAT(places(table_of(exact_workload(untied, one_us)), 0, OpType::kTiedEmbedding),
              IsEmpty());
}

// A bias of the head is its own; cut gradients are added up by their owners, half of the table
// each; under DualPipe both tables are on both stages, which add up all that they hold.
TEST(ExactStepEnd, OfTheTiedTableOnlyWhatARankHoldsIsSummed) {
  const auto tied = [](const Job& job) {
    const Workload workload = exact_workload(job, one_us);
    const OpTable& table = table_of(workload);
    Bytes bytes;
    for (const std::int32_t place : places(table, 0, OpType::kTiedEmbedding)) {
      bytes += at(table, 0, place).bytes;
    }
    return bytes;
  };
  Job job = gpt_job(2, 2);
  job.model.after.back().bias = true;
  EXPECT_EQ(tied(job), Bytes(256 * 64 * 4));
  job.sharding = Sharding::kZero1;
  EXPECT_EQ(tied(job), Bytes(256 * 64 * 4));
  for (const Sharding sharding : {Sharding::kZero2, Sharding::kZero3}) {
    job.sharding = sharding;
    EXPECT_EQ(tied(job), Bytes(256 * 64 * 4 / 2));
  }
  job.sharding = Sharding::kNone;
  job.schedule = "dualpipe";
  EXPECT_EQ(tied(job), Bytes());
}

// One copy of the parameters leaves nothing to cut: its gradients stay and are reset by every ZeRO.
TEST(ExactStepEnd, GradientsOfOneCopyAreResetByEveryZero) {
  const auto bytes_of_update = [](Job job, Sharding sharding) {
    job.sharding = sharding;
    double bytes = 0;
    exact_workload(job, [&bytes](const Operator& op) {
      bytes += op.name == "gradient reset" ? op.bytes : 0;
      return Time::us(1);
    });
    return bytes;
  };
  const double one = bytes_of_update(gpt_job(2, 1), Sharding::kNone);
  const double two = bytes_of_update(gpt_job(2, 2), Sharding::kNone);
  EXPECT_GT(one, 0);
  for (const Sharding sharding : {Sharding::kZero1, Sharding::kZero2, Sharding::kZero3}) {
    EXPECT_EQ(bytes_of_update(gpt_job(2, 1), sharding), one);
    EXPECT_EQ(bytes_of_update(gpt_job(2, 2), sharding), sharding == Sharding::kZero1 ? two : 0);
  }
}

// Llama of 4 layers with norms over heads of 16 of queries and keys, tp 2, dp 2. Without sequence
// parallelism each rank has a part of these norms' gradients alone (Megatron Core sums them with
// qk_layernorm), with it also of the others', of 128; where gradients are cut over dp, of half.
TEST(ExactStepEnd, PartsOfReplicatedGradientsAreSummed) {
  Job job;
  job.model = testing::llama(4, 128, 8, 8, 256, 256);
  job.gpus = 4;
  job.tp = 2;
  job.seq = 128;
  job.global_batch = 2;
  const auto summed = [&] {
    const Workload workload = exact_workload(job, one_us);
    Bytes bytes;
    for (const std::int32_t place : places(table_of(workload), 0, OpType::kReplicatedGradients)) {
      const Op& op = at(table_of(workload), 0, place);
      EXPECT_EQ(family_of(table_of(workload), op).name, "tp");
      bytes += op.bytes;
    }
    return bytes;
  };
  EXPECT_EQ(summed(), Bytes());
  std::vector<Module>& layer = job.model.blocks[0].modules;
  for (const char* name : {"q_norm", "k_norm"}) {
    Module norm = testing::norm(name, 128);
    norm.in = 16;
    layer.insert(layer.begin() + 2, norm);
  }
  EXPECT_EQ(summed(), Bytes(4 * 2 * 16 * 4));
  job.sequence_parallel = true;
  EXPECT_EQ(summed(), Bytes((4 * (2 * 16 + 2 * 128) + 128) * 4));
  job.sharding = Sharding::kZero1;
  EXPECT_EQ(summed(), Bytes((4 * (2 * 16 + 2 * 128) + 128) * 4));
  for (const Sharding sharding : {Sharding::kZero2, Sharding::kZero3}) {
    job.sharding = sharding;
    EXPECT_EQ(summed(), Bytes((4 * (2 * 16 + 2 * 128) + 128) * 4 / 2));
  }
}

// The norm of all gradients is a barrier: one number over a copy of the model, or over all ranks
// where each holds its own part of the optimizer; the optimizer comes behind it, on every stage.
TEST(ExactStepEnd, TheOptimizerWaitsForTheNormOfAll) {
  for (const auto& [sharding, family] :
       {std::pair(Sharding::kNone, "tp.model"), std::pair(Sharding::kZero1, "world"),
        std::pair(Sharding::kZero3, "world")}) {
    Job job = gpt_job(2, 2);
    job.sharding = sharding;
    const Workload workload = exact_workload(job, one_us);
    const OpTable& table = table_of(workload);
    for (std::size_t stage = 0; stage < 2; ++stage) {
      const std::int32_t sum = places(table, stage, OpType::kClip).back();
      EXPECT_EQ(at(table, stage, sum).comm, CommType::kAllReduce);
      EXPECT_EQ(at(table, stage, sum).bytes, Bytes(4));
      EXPECT_EQ(family_of(table, at(table, stage, sum)).name, family);
      const std::vector<std::int32_t> optimizer = places(table, stage, OpType::kOptimizer);
      // Adam, the reset of gradients that are not freed, and the copy in 16 bits.
      ASSERT_EQ(optimizer.size(), sharding == Sharding::kZero3 ? 2U : 3U);
      EXPECT_THAT(at(table, stage, optimizer[0]).after, ElementsAre(sum));
      for (std::size_t i = 1; i < optimizer.size(); ++i) {
        EXPECT_THAT(at(table, stage, optimizer[i]).after, ElementsAre(optimizer[i - 1]));
      }
    }
  }
}

// So nobody's optimizer begins before the last backward pass of the slowest rank has ended.
TEST(ExactStepEnd, ASlowRankHoldsUpEveryOptimizer) {
  const std::vector<Straggler> slow{Straggler::parse("gpu:1:5")};
  Trace trace;
  StepOptions options;
  options.stragglers = slow;
  options.trace = &trace;
  testing::simulate_free(exact_workload(gpt_job(2, 2), one_us), options);
  float last = 0;
  std::vector<float> begins;
  for (std::size_t row = 0; row < trace.size(); ++row) {
    const TraceRow what = row_at(trace, row);
    if (what.optype == TraceOp::kBackwardCompute && what.rank == 1) {
      last = std::max(last, what.start_s + what.duration_s);
    } else if (what.optype == TraceOp::kOptimizer) {
      begins.push_back(what.start_s);
    }
  }
  ASSERT_EQ(begins.size(), 4U);
  EXPECT_GT(last, 0);
  for (const float begin : begins) {
    EXPECT_GE(begin, last);
  }
}

// The last stage's ranks average the loss of the last microbatch; nothing waits for it.
TEST(ExactStepEnd, TheLossIsReducedBesideTheRest) {
  const Workload workload = exact_workload(gpt_job(2, 2), one_us);
  const OpTable& table = table_of(workload);
  EXPECT_THAT(places(table, 0, OpType::kLoss), IsEmpty());
  const std::vector<std::int32_t> loss = places(table, 1, OpType::kLoss);
  ASSERT_EQ(loss.size(), 1U);
  EXPECT_EQ(at(table, 1, loss[0]).comm, CommType::kAllReduce);
  EXPECT_EQ(at(table, 1, loss[0]).bytes, Bytes(8));
  EXPECT_EQ(family_of(table, at(table, 1, loss[0])).name, "dp");
  for (const Op& op : table.programs[1].ops) {
    EXPECT_THAT(op.after, Not(Contains(loss[0]))) << op.name;
  }
}

// A distributed optimizer's parameters come bucket by bucket: the first layer waits for its own
// alone, so that the others are gathered while it computes. Without overlap all are gathered behind
// the optimizer.
TEST(ExactStepEnd, ParametersAreGatheredAheadOfTheFirstPass) {
  Job job = gpt_job(1, 4);
  job.sharding = Sharding::kZero1;
  job.gradient_bucket = 60'000;
  const Workload workload = exact_workload(job, one_us);
  const OpTable& table = table_of(workload);
  const std::vector<std::int32_t> gathers = places(table, 0, OpType::kGatherParameters);
  ASSERT_GE(gathers.size(), 3U);
  std::vector<std::int32_t> first_user;  // of each bucket
  for (const std::int32_t gather : gathers) {
    EXPECT_THAT(at(table, 0, gather).after, IsEmpty());
    const std::vector<Op>& ops = table.programs[0].ops;
    const auto user = std::ranges::find_if(
        ops, [&](const Op& op) { return std::ranges::count(op.after, gather) > 0; });
    ASSERT_NE(user, ops.end());
    EXPECT_EQ(user->type, OpType::kForward);
    EXPECT_EQ(user->microbatch, 0);
    first_user.push_back(static_cast<std::int32_t>(user - ops.begin()));
  }
  EXPECT_TRUE(std::ranges::is_sorted(first_user));
  EXPECT_LT(first_user.front(), first_user.back());
  EXPECT_EQ(
      std::ranges::count_if(at(table, 0, first_user.front()).after,
                            [&](std::int32_t op) { return std::ranges::count(gathers, op) > 0; }),
      1);

  job.overlap_parameters = false;
  const Workload behind = exact_workload(job, one_us);
  const std::int32_t copy = places(table_of(behind), 0, OpType::kOptimizer).back();
  EXPECT_EQ(at(table_of(behind), 0, copy).name, "parameter copy");
  for (const std::int32_t gather : places(table_of(behind), 0, OpType::kGatherParameters)) {
    EXPECT_THAT(at(table_of(behind), 0, gather).after, ElementsAre(copy));
  }
}

/// How many reductions each chunk of a stage starts.
std::vector<std::int64_t> reductions(const Job& job, std::size_t stage) {
  const Workload workload = exact_workload(job, one_us);
  std::vector<std::int64_t> count(static_cast<std::size_t>(job.vpp));
  for (const std::int32_t place : places(table_of(workload), stage, OpType::kReduceGradients)) {
    const Op& op = at(table_of(workload), stage, place);
    if (op.chunk >= 0) {  // not a sum over the two copies of a bidirectional pipeline
      count.resize(std::max(count.size(), static_cast<std::size_t>(op.chunk) + 1));
      ++count[static_cast<std::size_t>(op.chunk)];
    }
  }
  return count;
}

// What Megatron's DDP does: only the first stage's first chunk has buckets, since its backward pass
// is the last to end. A layer has 49,984 parameters: each closes a bucket of 40,000, and so does
// the embedding that comes last, 256 x 64 + 128 x 64 with the one of positions, or with it what is
// left.
TEST(ExactStepEnd, OnlyTheFirstVirtualStageHasBuckets) {
  Job job = gpt_job(2, 4);
  job.gradient_bucket = 40'000;
  EXPECT_EQ(reductions(job, 0), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(reductions(job, 1), (std::vector<std::int64_t>{1}));
  job.vpp = 3;
  EXPECT_EQ(reductions(job, 0), (std::vector<std::int64_t>{2, 1, 1}));
  EXPECT_EQ(reductions(job, 1), (std::vector<std::int64_t>{1, 1, 1}));
  job.sharding = Sharding::kZero1;
  EXPECT_EQ(reductions(job, 0), (std::vector<std::int64_t>{2, 1, 1}));
  job.overlap_gradients = false;
  EXPECT_EQ(reductions(job, 0), (std::vector<std::int64_t>{1, 1, 1}));
}

// Both ends of a bidirectional pipeline are a first stage.
TEST(ExactStepEnd, BothDirectionsFirstStagesHaveBuckets) {
  Job job = gpt_job(2, 4);
  job.schedule = "dualpipe";
  job.gradient_bucket = 40'000;
  const std::vector<std::int64_t> first = reductions(job, 0), last = reductions(job, 1);
  ASSERT_EQ(first.size(), 2U);
  ASSERT_EQ(last.size(), 2U);
  EXPECT_GT(first[0], 1);
  EXPECT_EQ(first[1], 1);
  EXPECT_EQ(last[0], 1);
  EXPECT_EQ(last[1], first[0]);
}

// Experts have the dense layers' limit, though fewer ranks hold the same ones.
TEST(ExactStepEnd, BucketsGrowWithAllRanksOfDataAndContext) {
  Job job = gpt_job(2, 32);
  EXPECT_EQ(bucket_limit(job, true), 40'000'000);
  job.gpus = 512;
  job.cp = 2;
  EXPECT_EQ(bucket_limit(job, true), 256'000'000);
  EXPECT_EQ(bucket_limit(job, false), std::numeric_limits<std::int64_t>::max());
  job.sharding = Sharding::kZero2;
  EXPECT_EQ(bucket_limit(job, false), 256'000'000);
}

// ZeRO-2 keeps no whole gradients: they are scattered behind every microbatch, not behind the last.
TEST(ExactStepEnd, Zero2ScattersTheGradientsOfEachMicrobatch) {
  const auto scattered = [](Sharding sharding) {
    Job job = gpt_job(1, 4);
    job.sharding = sharding;
    const Workload workload = exact_workload(job, one_us);
    std::int64_t bytes = 0;
    for (const Op& op : table_of(workload).programs[0].ops) {
      if (op.type == OpType::kReduceGradients) {
        EXPECT_EQ(op.comm, CommType::kReduceScatter);
      }
      bytes += op.comm == CommType::kReduceScatter ? op.bytes.count() : 0;
    }
    return bytes;
  };
  EXPECT_EQ(scattered(Sharding::kZero2), 4 * scattered(Sharding::kZero1));
}

}  // namespace
}  // namespace lockstep::exact_step_end_test
