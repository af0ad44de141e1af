#include "generator/exact/exact_workload.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/model/zoo.h"
#include "simulator/replay/step_simulation.h"
#include "tests/support/exact_models.h"
#include "tests/support/free_network.h"
#include "tests/support/replayed_job.h"
#include "topologies/topology_file.h"
#include "workloads/validate.h"
#include "workloads/workload_json.h"

namespace lockstep::exact_workload_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Time one_us(const Operator&) { return Time::us(1); }

/// Layers alone, of one operator each way: forward 1 us, backward 2 us.
Time uniform(const Operator& op) {
  if (op.name == "gradient norm" || op.name == "optimizer" || op.name == "parameter copy" ||
      op.name == "gradient reset" || op.name.find("residual") != std::string::npos) {
    return {};
  }
  return Time::us(1);
}

Job uniform_job(std::int64_t pp, std::int64_t vpp, std::int64_t microbatches) {
  Job job;
  job.gpus = job.pp = pp;
  job.vpp = vpp;
  job.global_batch = microbatches;
  job.seq = 64;
  job.model.name = "uniform";
  job.model.blocks = {
      {"layer", pp * vpp, {testing::linear(ModuleKind::kRowLinear, "product", 16, 16)}}};
  return job;
}

Time step_of(const Workload& workload) { return testing::simulate_free(workload).total; }

// Narayanan et al., SC'21, section 2.2: with forward f and backward b of a stage and m microbatches
// a step takes (m + pp - 1)(f + b); interleaved (m + (pp - 1) / vpp)(f + b), f and b of all chunks.
// Here a chunk takes 1 us forward and 2 us backward.
TEST(ExactWorkload, UniformStepsTakeThePublishedTime) {
  for (const std::int64_t pp : {1, 2, 4, 5}) {
    for (const std::int64_t microbatches : {1, 2, 4, 7, 12}) {
      Job job = uniform_job(pp, 1, microbatches);
      EXPECT_EQ(step_of(exact_workload(job, uniform)), Time::us(3 * (microbatches + pp - 1)))
          << pp << " stages, " << microbatches << " microbatches";
      job.schedule = "gpipe";
      EXPECT_EQ(step_of(exact_workload(job, uniform)), Time::us(3 * (microbatches + pp - 1)));
    }
  }
  for (const std::int64_t pp : {2, 4}) {
    for (const std::int64_t vpp : {2, 3}) {
      for (const std::int64_t rounds : {1, 2, 3}) {
        const Job job = uniform_job(pp, vpp, rounds * pp);
        EXPECT_EQ(step_of(exact_workload(job, uniform)), Time::us(3 * (rounds * pp * vpp + pp - 1)))
            << pp << " stages of " << vpp << " chunks, " << rounds * pp << " microbatches";
      }
    }
  }
}

// The same formulas for what the first stage waits while the others compute: (pp - 1)(f + b), by
// vpp where chunks are interleaved. Nothing else is exposed where messages take no time.
TEST(ExactWorkload, TheBubbleOfUniformStepsIsThePublishedOne) {
  const auto expect_bubble = [](const Job& job, Time bubble, const std::string& what) {
    const StepResult step = testing::simulate_free(exact_workload(job, uniform));
    EXPECT_EQ(step.bubble, bubble) << what;
    EXPECT_EQ(step.exposed, Time()) << what;
    EXPECT_EQ(step.compute + step.bubble, step.total) << what;
  };
  for (const std::int64_t pp : {1, 2, 4, 5}) {
    for (const std::int64_t microbatches : {1, 2, 7, 12}) {
      Job job = uniform_job(pp, 1, microbatches);
      expect_bubble(job, Time::us(3 * (pp - 1)), "1F1B");
      job.schedule = "gpipe";
      expect_bubble(job, Time::us(3 * (pp - 1)), "GPipe");
    }
    Job job = uniform_job(pp, 1, 2 * pp + 3);
    job.schedule = "zb-h1";
    expect_bubble(job, Time::us(pp - 1), "ZB-H1");
  }
  for (const std::int64_t vpp : {2, 3}) {
    expect_bubble(uniform_job(4, vpp, 8), Time::us(3 * 3), "interleaved");
  }
}

// Qi et al. 2023, table 1: ZB-H1's bubble is (pp - 1)(F + B - W), with F forward, B and W the
// gradients of input and weights. Here F = B = W = 1 us: a third of 1F1B's (pp - 1)(F + B + W).
TEST(ExactWorkload, ZeroBubbleH1TakesThePublishedTime) {
  for (const std::int64_t pp : {1, 2, 4, 5, 8}) {
    for (const std::int64_t microbatches : {pp, 2 * pp, 2 * pp + 3}) {
      Job job = uniform_job(pp, 1, microbatches);
      job.schedule = "zb-h1";
      EXPECT_EQ(step_of(exact_workload(job, uniform)), Time::us(3 * microbatches + pp - 1))
          << pp << " stages, " << microbatches << " microbatches";
    }
  }
}

// The same with B slower than F and W: F = 2, B = 3, W = 1.
TEST(ExactWorkload, ZeroBubbleH1WithUnequalParts) {
  const auto time = [](const Operator& op) {
    if (uniform(op) == Time()) {
      return Time();
    }
    const bool weights = op.name.find("weight") != std::string::npos;
    return Time::us(!op.backward ? 2 : weights ? 1 : 3);
  };
  Job job = uniform_job(4, 1, 12);
  job.schedule = "zb-h1";
  EXPECT_EQ(step_of(exact_workload(job, time)), Time::us(12 * 6 + 3 * (2 + 3 - 1)));
}

// DeepSeek-V3 report, table 2: DualPipe's bubble is (pp/2 - 1)(F&B + B - 3W), with B a whole
// backward pass. Here a stage has 32 layers of F = W = 1 us and B = 2 us, and side by side nothing
// is slower: F&B = 3 us. The formula takes a pair's results to be there when both passes end; here
// the first of the two ends up to a layer earlier, at each of the pairs on the way to the middle.
TEST(ExactWorkload, DualPipeTakesThePublishedTime) {
  constexpr std::int64_t kLayers = 32;
  for (const std::int64_t pp : {2, 4, 8}) {
    for (const std::int64_t microbatches : {2 * pp, 2 * pp + 2, 4 * pp}) {
      Job job = uniform_job(pp, 1, microbatches);
      job.model.blocks.front().layers = kLayers * pp;
      job.schedule = "dualpipe";
      const Workload workload = exact_workload(job, uniform);
      ASSERT_NO_THROW(validate(workload));
      const std::int64_t us = 3 * microbatches + (pp / 2 - 1) * (3 + 2 - 3);
      const Time step = step_of(workload);
      EXPECT_LE(step, Time::us(kLayers * us)) << pp << " stages, " << microbatches;
      EXPECT_GE(step, Time::us(kLayers * us - 3 * (pp / 2 - 1))) << pp << ", " << microbatches;
      // Nothing else is exposed, so the rest of the first stage's step is the bubble.
      const StepResult result = testing::simulate_free(workload);
      EXPECT_EQ(result.exposed, Time());
      EXPECT_EQ(result.compute, Time::us(kLayers * 3 * microbatches));
      EXPECT_EQ(result.bubble, step - result.compute);
    }
  }
}

// In DualPipe a forward and a backward pass take turns, so that transfers of one run beside the
// computing of the other.
TEST(ExactWorkload, DualPipeRunsPassesSideBySide) {
  Job job = uniform_job(2, 1, 8);
  job.model.blocks.front().layers = 8;
  job.schedule = "dualpipe";
  const Workload workload = exact_workload(job, uniform);
  const std::vector<Op>& ops = std::get<OpTable>(workload.jobs[0].work).programs[0].ops;
  int changes = 0;
  const Op* before = nullptr;
  for (const Op& op : ops) {
    if (op.comm != CommType::kNone || op.microbatch < 0) {
      continue;
    }
    changes += before != nullptr && before->type != op.type ? 1 : 0;
    before = &op;
  }
  EXPECT_GT(changes, 20);
}

// Side by side nothing is slower here, and the bubble is that of 1F1B: (pp - 1)(f + b), by vpp
// where chunks are interleaved; a pass that stands beside another ends up to a layer earlier.
TEST(ExactWorkload, PassesSideBySideHaveTheBubbleOf1F1B) {
  constexpr std::int64_t kLayers = 32;
  for (const auto& [pp, vpp] : {std::pair(1, 1), {2, 1}, {4, 1}, {2, 2}, {4, 2}, {4, 4}}) {
    for (const std::int64_t microbatches : {pp, 2 * pp, 4 * pp}) {
      SCOPED_TRACE(fmt::format("{} stages of {} chunks, {}", pp, vpp, microbatches));
      Job job = uniform_job(pp, vpp, microbatches);
      job.model.blocks.front().layers = kLayers * pp * vpp;
      job.schedule = "1f1b-overlap";
      const Workload workload = exact_workload(job, uniform);
      ASSERT_NO_THROW(validate(workload));
      const std::int64_t layers = kLayers * 3 * (microbatches * vpp + pp - 1);
      const Time step = step_of(workload);
      EXPECT_LE(step, Time::us(layers));
      EXPECT_GE(step, Time::us(layers - 3 * 2 * (pp - 1)));
    }
  }
}

// A layer's passes wait for its experts' transfers; side by side those of one pass run while the
// other computes, all but those of the first forward and the last backward of eight passes.
TEST(ExactWorkload, PassesSideBySideHideExpertsTransfers) {
  const auto exposed_s = [](const char* schedule) {
    Job job;
    job.model = find_model("mixtral-8x7b", {{"layers", 4.0}});
    job.gpus = job.ep = 8;
    job.seq = 2048;
    job.global_batch = 8 * 8;
    job.schedule = schedule;
    const Topology topology = topology_from("Spectrum-X:g=8,gps=1");
    const StepResult step = testing::replay_job(job, topology, testing::roofline_of(job));
    return step.exposed_by_group[static_cast<std::size_t>(GroupKind::kEp)].seconds();
  };
  const double apart = exposed_s("1f1b"), beside = exposed_s("1f1b-overlap");
  EXPECT_GT(apart, 0.05);
  EXPECT_LT(beside, 0.25 * apart);
  EXPECT_GE(beside, 0.125 * apart);
}

TEST(ExactWorkload, SchedulesRefuseShapesTheyDoNotKnow) {
  const auto error_of = [](std::string_view schedule, std::int64_t pp, std::int64_t vpp,
                           std::int64_t microbatches) -> std::string {
    Job job = uniform_job(pp, vpp, microbatches);
    job.schedule = schedule;
    try {
      exact_workload(job, uniform);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of("zb-h1", 2, 2, 4), HasSubstr("knows no interleaving"));
  EXPECT_THAT(error_of("dualpipe", 3, 1, 12), HasSubstr("an even number"));
  EXPECT_THAT(error_of("dualpipe", 4, 1, 6), HasSubstr("at least 2 pp = 8"));
  EXPECT_THAT(error_of("dualpipe", 4, 1, 9), HasSubstr("at least 2 pp = 8"));
}

struct Shape {
  std::int64_t tp = 1, cp = 1, ep = 1, pp = 1, vpp = 1, dp = 1, etp = 0;
  std::int64_t experts = 0;
  bool sequence_parallel = false;
};

Job job_of(const Shape& shape) {
  Job job;
  job.model = testing::llama(8, 64, 8, 4, 128, 256, shape.experts);
  job.tp = shape.tp;
  job.cp = shape.cp;
  job.ep = shape.ep;
  job.pp = shape.pp;
  job.vpp = shape.vpp;
  job.expert_tp = shape.etp;
  job.gpus = shape.tp * shape.cp * shape.pp * shape.dp;
  job.seq = 128;
  job.global_batch = 4 * shape.dp;
  job.sequence_parallel = shape.sequence_parallel;
  return job;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> kShapes{
      {},
      {.tp = 2},
      {.tp = 2, .sequence_parallel = true},
      {.tp = 8, .sequence_parallel = true},
      {.cp = 2},
      {.tp = 2, .cp = 4, .sequence_parallel = true},
      {.pp = 2, .dp = 2},
      {.pp = 2, .vpp = 2},
      {.pp = 4, .vpp = 2, .dp = 2},
      {.tp = 2, .cp = 2, .pp = 2, .vpp = 2, .dp = 2, .sequence_parallel = true},
      {.ep = 2, .dp = 2, .experts = 4},
      {.ep = 4, .pp = 2, .dp = 4, .experts = 8},
      {.tp = 2, .ep = 4, .pp = 2, .dp = 4, .etp = 1, .experts = 8, .sequence_parallel = true},
      {.tp = 2,
       .cp = 2,
       .ep = 2,
       .pp = 2,
       .vpp = 2,
       .dp = 2,
       .experts = 4,
       .sequence_parallel = true},
  };
  return kShapes;
}

/// Valid, and every rank comes to its end.
void expect_sound(const Job& job, const std::string& what) {
  const Workload workload = exact_workload(job, one_us);
  ASSERT_NO_THROW(validate(workload)) << what;
  try {
    EXPECT_GT(step_of(workload), Time()) << what;
  } catch (const Error& error) {
    FAIL() << what << ": " << error.what();
  }
}

// What a file says of the cut, for those who read the workload without the job.
TEST(ExactWorkload, SaysHowItIsCut) {
  Job job = uniform_job(2, 2, 4);
  job.gpus = 8;
  job.cp = 2;
  job.global_batch = 8;
  EXPECT_EQ(exact_workload(job, uniform).jobs[0].parallel,
            (Parallelism{.gpus = 8, .pp = 2, .vpp = 2, .ga = 4, .cp = 2}));
}

TEST(ExactWorkload, EveryShapeIsValidAndRuns) {
  for (std::size_t i = 0; i < shapes().size(); ++i) {
    for (const Sharding sharding :
         {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3}) {
      Job job = job_of(shapes()[i]);
      job.sharding = sharding;
      job.gradient_bucket = 30'000;
      const std::string what =
          "shape " + std::to_string(i) + ", sharding " + std::to_string(static_cast<int>(sharding));
      expect_sound(job, what);
      if (job.pp > 1) {  // the embedding alone: a stage without layers, and without experts
        job.stage_layers.assign(static_cast<std::size_t>(job.pp * job.vpp), 1);
        job.stage_layers.front() = 0;
        job.stage_layers.back() = 10 - job.pp * job.vpp;
        expect_sound(job, what + ", an empty stage");
      }
    }
  }
}

TEST(ExactWorkload, EveryOptionIsValidAndRuns) {
  const Shape all{.tp = 2,
                  .cp = 2,
                  .ep = 2,
                  .pp = 2,
                  .vpp = 2,
                  .dp = 2,
                  .experts = 4,
                  .sequence_parallel = true};
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    for (const ContextComm comm :
         {ContextComm::kRing, ContextComm::kAllGather, ContextComm::kAllToAll}) {
      Job job = job_of(all);
      job.recompute = recompute;
      job.context_comm = comm;
      expect_sound(job, "recompute and context");
    }
  }
  Job job = job_of(all);
  job.sharding = Sharding::kZero1;
  job.overlap_gradients = job.overlap_parameters = false;
  job.precision = Precision::kFp16;
  expect_sound(job, "no overlap");
  job.precision = Precision::kFp8;
  job.moe_capacity = 1.25;
  expect_sound(job, "fp8, capacity");
  job = job_of({.pp = 2, .dp = 4});
  job.model = testing::gpt(4, 64, 8, 256, 128);
  job.sharding = Sharding::kZero3;
  job.hsdp_replicas = 2;
  expect_sound(job, "hybrid sharding, tied head");
  job = job_of({.tp = 2, .pp = 2, .dp = 2});
  job.rank_order = "tp-cp-ep-pp-dp";
  expect_sound(job, "pipeline before data");
}

/// The operations of a program's family.
std::vector<Op> ops_on(const Workload& workload, std::size_t program, std::string_view family) {
  const auto& table = std::get<OpTable>(workload.jobs[0].work);
  std::vector<Op> found;
  for (const Op& op : table.programs[program].ops) {
    if (op.group >= 0 && table.groups[static_cast<std::size_t>(op.group)].name == family) {
      found.push_back(op);
    }
  }
  return found;
}

// Two copies of a model on ranks 0 to 3 and 4 to 7, its experts over 2: each gathers its own, and
// sums its halves of their gradients with the other's.
TEST(ExactWorkload, EachCopyOfAShardedModelGathersItsExperts) {
  Job job = job_of({.ep = 2, .dp = 8});
  job.model = testing::llama(1, 64, 8, 4, 128, 256, 8);
  job.global_batch = 8;
  job.sharding = Sharding::kZero3;
  job.hsdp_replicas = 2;
  const Workload workload = exact_workload(job, one_us);
  const auto groups = [&](std::string_view name) {
    for (const GroupFamily& family : std::get<OpTable>(workload.jobs[0].work).groups) {
      if (family.name == name) {
        return family.members;
      }
    }
    return std::vector<std::vector<std::int32_t>>();
  };
  EXPECT_THAT(groups("dp_ep.shard"), ElementsAre(ElementsAre(0, 2), ElementsAre(4, 6),
                                                 ElementsAre(1, 3), ElementsAre(5, 7)));
  EXPECT_THAT(groups("dp_ep.replica"), ElementsAre(ElementsAre(0, 4), ElementsAre(2, 6),
                                                   ElementsAre(1, 5), ElementsAre(3, 7)));
  const Bytes experts(4 * 3 * 64 * 128);  // parameters of a rank
  const std::vector<Op> shard = ops_on(workload, 0, "dp_ep.shard");
  ASSERT_EQ(shard.size(), 3U);  // gathered forward and backward, then reduced
  EXPECT_EQ(shard[0].bytes, experts * 2);
  EXPECT_EQ(shard[2].bytes, experts * 4);
  const std::vector<Op> replica = ops_on(workload, 0, "dp_ep.replica");
  ASSERT_EQ(replica.size(), 1U);
  EXPECT_EQ(replica[0].bytes, experts * 4 / 2);
}

// Two stages, tp 2 without sequence parallelism: 2 microbatches of 1 x 128 tokens of 64 features in
// bf16 are 16 KiB a message, forward from stage 0 and backward from stage 1.
TEST(ExactWorkload, MessagesBetweenStages) {
  Job job = job_of({.tp = 2, .pp = 2});
  job.global_batch = 2;
  const Workload workload = exact_workload(job, one_us);
  const std::vector<Op> messages = ops_on(workload, 0, "pp");
  ASSERT_EQ(messages.size(), 4U);
  for (const Op& op : messages) {
    EXPECT_EQ(op.bytes, Bytes(16384));
    EXPECT_EQ(op.peer, 1);
  }
  job.sequence_parallel = true;  // each rank has half the rows
  EXPECT_EQ(ops_on(exact_workload(job, one_us), 0, "pp").front().bytes, Bytes(8192));
}

// Delayed scaling: each pass ends with an all-reduce over the ranks of its stage, of 3 fp32 numbers
// for each product forward and 2 backward. A stage of 4 llama layers has 4 4 = 16 products. What
// goes on to the next stage waits for it.
TEST(ExactWorkload, DelayedScalingSharesTheLargestValues) {
  Job job = job_of({.tp = 2, .pp = 2, .dp = 2});
  job.precision = Precision::kFp8;
  job.global_batch = 2 * job.dp();
  const Workload workload = exact_workload(job, one_us);
  const std::vector<Op> shared = ops_on(workload, 0, "tp.dp");
  ASSERT_EQ(shared.size(), 4U);
  std::int64_t bytes = 0;
  for (const Op& op : shared) {
    EXPECT_EQ(op.comm, CommType::kAllReduce);
    bytes += op.bytes.count();
  }
  EXPECT_EQ(bytes, 2 * 16 * (12 + 8));
  const OpProgram& program = std::get<OpTable>(workload.jobs[0].work).programs[0];
  const auto message = std::ranges::find(program.ops, OpType::kForwardSend, &Op::type);
  ASSERT_NE(message, program.ops.end());
  EXPECT_EQ(program.ops[static_cast<std::size_t>(message->after.front())].name, "largest values");
  job.fp8_recipe = Fp8Recipe::kMxfp8;
  EXPECT_TRUE(ops_on(exact_workload(job, one_us), 0, "tp.dp").empty());
}

// A llama layer of hidden 64, 8 heads, 4 of keys and values (of 8), MLP 128 on tp 1:
// 64 x 128 + 64 x 64 + 64 x 256 + 128 x 64 + 2 x 64 = 36,992 parameters; 8 layers, 256 x 64 for
// the embedding and the head each, the last norm 64: 328,768. Gradients are fp32.
TEST(ExactWorkload, GradientsOfAllParametersAreReducedOnce) {
  Job job = job_of({.dp = 2});
  job.gradient_bucket = 50'000;
  Workload workload = exact_workload(job, one_us);
  Bytes sum;
  std::size_t reductions = 0;
  for (const Op& op : ops_on(workload, 0, "dp")) {
    EXPECT_EQ(op.comm, CommType::kAllReduce);
    if (op.name == "reduce gradients") {
      sum += op.bytes;
      ++reductions;
    }
  }
  EXPECT_EQ(sum, Bytes(328'768 * 4));
  EXPECT_GT(reductions, 4U);
  job.sharding = Sharding::kZero1;
  workload = exact_workload(job, one_us);
  Bytes gathered;
  sum = Bytes();
  for (const Op& op : ops_on(workload, 0, "dp")) {
    sum += op.comm == CommType::kReduceScatter ? op.bytes : Bytes();
    gathered += op.comm == CommType::kAllGather ? op.bytes : Bytes();
  }
  EXPECT_EQ(sum, Bytes(328'768 * 4));
  EXPECT_EQ(gathered, Bytes(328'768 * 2));
}

// All but the last bucket are under way before the last computation of the backward pass ends.
TEST(ExactWorkload, ReductionsOverlapTheLastBackwardPass) {
  Job job = job_of({.dp = 2});
  job.gradient_bucket = 30'000;
  const Workload workload = exact_workload(job, one_us);
  const auto& ops = std::get<OpTable>(workload.jobs[0].work).programs[0].ops;
  std::size_t last_backward = 0, early = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].name.starts_with("backward")) {
      last_backward = i;
    }
  }
  for (std::size_t i = 0; i < last_backward; ++i) {
    if (ops[i].name == "reduce gradients") {
      ASSERT_EQ(ops[i].after.size(), 1U);
      EXPECT_TRUE(ops[static_cast<std::size_t>(ops[i].after[0])].name.starts_with("backward 3"));
      ++early;
    }
  }
  EXPECT_GE(early, 8U);
}

// ZeRO-3 gathers each unit's parameters twice and reduces its gradients once a microbatch:
// 10 units (embedding, 8 layers, head), 4 microbatches.
TEST(ExactWorkload, FullShardingCommunicatesEveryMicrobatch) {
  Job job = job_of({.dp = 2});
  job.sharding = Sharding::kZero3;
  const Workload workload = exact_workload(job, one_us);
  std::size_t gathers = 0, scatters = 0;
  for (const Op& op : ops_on(workload, 0, "dp")) {
    gathers += op.comm == CommType::kAllGather ? 1 : 0;
    scatters += op.comm == CommType::kReduceScatter ? 1 : 0;
  }
  EXPECT_EQ(gathers, 2U * 10 * 4);
  EXPECT_EQ(scatters, 1U * 10 * 4);
}

TEST(ExactWorkload, ReadsBackFromJson) {
  const Workload workload = exact_workload(
      job_of({.tp = 2, .cp = 2, .pp = 2, .vpp = 2, .dp = 2, .sequence_parallel = true}), one_us);
  EXPECT_EQ(read_workload_json(to_workload_json(workload), "exact.json"), workload);
}

std::string error_of(const Job& job) {
  try {
    exact_workload(job, one_us);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

template <class Change>
std::string error_with(Change change) {
  Job job = job_of({.tp = 2, .pp = 2, .dp = 2});
  change(job);
  return error_of(job);
}

TEST(ExactWorkload, BrokenRulesAreNamed) {
  EXPECT_EQ(error_with([](Job&) {}), "");
  EXPECT_THAT(error_with([](Job& job) { job.global_batch = 5; }),
              AllOf(HasSubstr("global_batch: 5 is no multiple of micro_batch x dp = 1 x 2"),
                    HasSubstr("4 or 6")));
  EXPECT_THAT(error_with([](Job& job) { job.model.blocks[0].modules[2].heads = 9; }),
              HasSubstr("tp: 2 does not divide the heads of attention.core (9)"));
  EXPECT_THAT(error_with([](Job& job) { job.model.blocks[0].modules[2].kv_heads = 3; }),
              HasSubstr("the 3 key-value heads"));
  EXPECT_THAT(error_with([](Job& job) { job.ep = 2; }), HasSubstr("no experts to spread"));
  EXPECT_THAT(error_with([](Job& job) { job.schedule = "1f2b"; }), HasSubstr("did you mean 1f1b?"));
  EXPECT_THAT(error_with([](Job& job) { job.hsdp_replicas = 2; }), HasSubstr("hsdp_replicas"));
  EXPECT_THAT(error_with([](Job& job) {
                job.precision = Precision::kFp8;
                job.gpu_type = "A100";
              }),
              HasSubstr("A100 has no fp8"));
  EXPECT_THAT(error_with([](Job& job) { job.moe_imbalance = 0.5; }), HasSubstr("moe_imbalance"));
  EXPECT_THAT(error_with([](Job& job) { job.seq = -1; }), HasSubstr("seq: -1 is out of range"));
  EXPECT_THAT(error_with([](Job& job) { job.seq = 1'000'000'000'000'000'000; }), HasSubstr("seq"));
  EXPECT_THAT(error_with([](Job& job) { job.global_batch = std::int64_t{1} << 39; }),
              HasSubstr("fewer microbatches"));
  EXPECT_THAT(error_with([](Job& job) { job.global_batch = 2 * 4'000'000; }),
              HasSubstr("at most 20000000"));
  EXPECT_THAT(error_with([](Job& job) {
                job.tp = 1;
                job.gpus = 2;
                job.global_batch = job.micro_batch = std::int64_t{1} << 20;
                job.seq = std::int64_t{1} << 30;
                job.model = testing::llama(8, 64, 8, 4, 128, 256, 4);
              }),
              HasSubstr("token copies go through moe"));
  EXPECT_THAT(error_with([](Job& job) {
                for (Module& module : job.model.blocks[0].modules) {
                  module.in = module.out = std::int64_t{1} << 31;
                }
                job.model.blocks[0].layers = 100;
              }),
              HasSubstr("left the range"));
  EXPECT_THAT(error_with([](Job& job) { job.vpp = -1; }), HasSubstr("vpp: -1 is out of range"));
  EXPECT_THAT(error_with([](Job& job) {
                job.vpp = 2;
                job.global_batch = 6;
              }),
              HasSubstr("3 microbatches do not divide by pp = 2, as interleaving needs"));
  EXPECT_THAT(error_with([](Job& job) { job.model = testing::llama(8, 64, 8, 4, 128, 256, 4); }),
              HasSubstr("need sequence parallelism"));
  EXPECT_THAT(error_with([](Job& job) {
                job.gpus = 32;
                job.cp = 4;
                job.seq = 100;
              }),
              HasSubstr("seq: 100 tokens do not divide into 2 x cp = 8 chunks"));
}

}  // namespace
}  // namespace lockstep::exact_workload_test
