// Plans whose pipelines differ: the closed form is below the replay; alike pipelines are the job
// they would be without this; the search finds the best of what its parts find.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/vocabulary.h"
#include "planner/job/mixed_bound.h"
#include "planner/job/mixed_search.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/tune.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/step_simulation.h"
#include "tests/support/random_job.h"
#include "tests/support/replayed_job.h"
#include "topologies/topology_file.h"
#include "workloads/validate.h"

namespace lockstep::plan_mixed_property_test {
namespace {

using testing::pick;

std::vector<OperatorTime> times_of(const Job& base, const std::vector<GpuPool>& pools) {
  std::vector<OperatorTime> times;
  for (const GpuPool& pool : pools) {
    Job job = base;
    job.gpu_type = pool.type;
    times.push_back(testing::roofline_of(job));
  }
  return times;
}

/// Random layers a stage, each one at least.
std::vector<std::int64_t> random_split(Rng& rng, std::int64_t layers, std::size_t stages) {
  std::vector<std::int64_t> split(stages, 1);
  for (std::int64_t left = layers - std::ssize(split); left > 0; --left) {
    ++split[rng.below(split.size())];
  }
  return split;
}

MixedJob random_mixed_job(Rng& rng, const std::vector<GpuPool>& pools) {
  const std::int64_t layers = rng.between(4, 12);
  MixedJob mixed;
  for (const GpuPool& pool : pools) {
    mixed.gpu_types.push_back(pool.type);
  }
  Job& base = mixed.base;
  base.model = rng.below(2) == 0 ? testing::llama(layers, 256, 8, 8, 512, 32000)
                                 : testing::llama(layers, 2048, 16, 8, 8192, 32000);
  base.tp = pick<std::int64_t>(rng, {1, 2, 4});
  base.gpus = base.tp;
  base.seq = 512;
  base.micro_batch = pick<std::int64_t>(rng, {1, 2});
  base.sequence_parallel = base.tp > 1 && rng.below(2) == 0;
  base.recompute = pick(rng, {Recompute::kNone, Recompute::kFull});
  base.sharding = pick(rng, {Sharding::kNone, Sharding::kZero1});
  base.gradient_bucket = pick<std::int64_t>(rng, {0, 20'000, 1'000'000});
  base.overlap_gradients = rng.below(4) > 0;
  base.overlap_parameters = rng.below(2) == 0;
  base.host_launch = rng.below(4) == 0 ? Time::us(3) : Time();
  base = with_padded_vocabulary(std::move(base));
  std::vector<std::vector<std::int32_t>> slots;
  std::vector<std::int64_t> counts;
  for (const GpuPool& pool : pools) {
    slots.push_back(pool.slots(base.tp));
    counts.push_back(std::min<std::int64_t>(std::ssize(slots.back()), 6));
  }
  const std::vector<Division> all = divisions(counts, layers);
  const Division& division = all[rng.below(all.size())];
  std::vector<std::size_t> next(slots.size());
  base.global_batch = 0;
  for (const PipelineForm& form : division) {
    PipelineKind& kind = mixed.kinds.emplace_back();
    kind.microbatches = rng.between(1, 6);
    kind.gpu_type = form.types;
    kind.layers = random_split(rng, layers, form.types.size());
    kind.first_rank.assign(static_cast<std::size_t>(form.pipelines),
                           std::vector<std::int32_t>(form.types.size()));
    const bool by_stage = rng.below(2) == 0;
    const std::size_t rows = kind.first_rank.size(), columns = form.types.size();
    for (std::size_t i = 0; i < rows * columns; ++i) {
      const std::size_t p = by_stage ? i % rows : i / columns;
      const std::size_t s = by_stage ? i / rows : i % columns;
      kind.first_rank[p][s] = slots[form.types[s]][next[form.types[s]]++];
    }
    base.global_batch += kind.microbatches * kind.pipelines() * base.micro_batch;
  }
  return mixed;
}

std::string random_cluster(Rng& rng) {
  return fmt::format(
      "heterogeneous:gpus-a=8,gpus-b=8,gpus-per-server-a={},gpus-per-server-b={},"
      "type-a={},type-b={},nic-a={}Gbps,nic-b={}Gbps,npa=16,psn=2,ro={}",
      pick<int>(rng, {4, 8}), pick<int>(rng, {4, 8}), pick<const char*>(rng, {"H100", "B200"}),
      pick<const char*>(rng, {"A100", "H20"}), pick<int>(rng, {100, 400}),
      pick<int>(rng, {100, 200}), pick<const char*>(rng, {"true", "false"}));
}

StepResult replay(const Workload& workload, const Topology& topology, const FlowOptions& flow) {
  return testing::replay_workload(workload, topology, flow);
}

TEST(MixedPlans, NoStepIsFasterThanTheBound) {
  Rng rng(7, "mixed bound");
  double sum = 0;
  const int rounds = 120;
  for (int round = 0; round < rounds; ++round) {
    const std::string name = random_cluster(rng);
    const Topology topology = topology_from(name);
    const std::vector<GpuPool> pools = gpu_pools(topology, 16);
    ASSERT_EQ(pools.size(), 2U);
    const MixedJob mixed = random_mixed_job(rng, pools);
    const std::vector<OperatorTime> times = times_of(mixed.base, pools);
    FlowOptions flow;
    flow.routes.pxn = rng.below(2) == 0;
    flow.routes.spray = rng.below(3) == 0;
    const Workload workload = mixed_workload(mixed, times);
    validate(workload);
    const double replayed = replay(workload, topology, flow).total.seconds();
    const double least = MixedBound(topology, pools, times).of(mixed).step_s;
    MixedPlan plan;
    plan.job = mixed;
    EXPECT_LE(least, replayed) << round << " on " << name << ": " << plan_text(plan);
    EXPECT_GT(least, 0);
    sum += least / replayed;
  }
  std::printf("the bound is %.1f %% of the replay, the mean of %d jobs\n", 100 * sum / rounds,
              rounds);
}

// All pipelines alike, stage by stage: the ranks, programs and groups of the usual job.
TEST(MixedPlans, AlikePipelinesAreTheUsualJob) {
  Rng rng(8, "alike pipelines");
  const Topology topology = topology_from("Spectrum-X:g=16,gps=8");
  for (int round = 0; round < 30; ++round) {
    Job job;
    const std::int64_t layers = rng.between(4, 10);
    job.model = testing::llama(layers, 512, 8, 8, 1024, 32000);
    job.tp = pick<std::int64_t>(rng, {1, 2, 4});
    job.pp = pick<std::int64_t>(rng, {1, 2, 4});
    job.gpus = 16;
    job.seq = 512;
    job.global_batch = job.dp() * rng.between(1, 5);
    job.sharding = pick(rng, {Sharding::kNone, Sharding::kZero1});
    job.gradient_bucket = pick<std::int64_t>(rng, {0, 100'000});
    job.stage_layers = random_split(rng, layers, static_cast<std::size_t>(job.pp));
    job = with_padded_vocabulary(std::move(job));
    MixedJob mixed;
    mixed.base = job;
    mixed.gpu_types = {"H100"};
    PipelineKind& kind = mixed.kinds.emplace_back();
    kind.microbatches = job.microbatches();
    kind.layers = job.stage_layers;
    kind.gpu_type.assign(kind.layers.size(), 0);
    for (std::int64_t p = 0; p < job.dp(); ++p) {
      std::vector<std::int32_t>& ranks = kind.first_rank.emplace_back();
      for (std::int64_t s = 0; s < job.pp; ++s) {
        ranks.push_back(static_cast<std::int32_t>(job.tp * (s * job.dp() + p)));
      }
    }
    const std::vector<OperatorTime> times = {testing::roofline_of(job)};
    const Time usual = testing::replay_job(job, topology, times.front()).total;
    const Time ours = replay(mixed_workload(mixed, times), topology, {}).total;
    EXPECT_EQ(ours.count_ps(), usual.count_ps()) << round << ": tp " << job.tp << " pp " << job.pp
                                                 << " ZeRO-" << static_cast<int>(job.sharding);
  }
}

MixedProblem small_problem(const Topology& topology) {
  MixedProblem problem;
  problem.base.model = testing::llama(8, 1024, 8, 8, 4096, 8192);
  problem.base.seq = 512;
  problem.base.global_batch = 24;
  problem.topology = &topology;
  problem.axes.gpus = {8};
  problem.axes.tp = {1, 2};
  problem.axes.micro_batch = {1, 2};
  problem.axes.recompute = {Recompute::kNone};
  problem.axes.sequence_parallel = {false};
  problem.pools = gpu_pools(topology, 8);
  for (GpuPool& pool : problem.pools) {
    pool.memory = Bytes(std::int64_t{80} << 30);
  }
  problem.rates.resize(problem.pools.size());
  problem.operator_times = [base = problem.base, pools = problem.pools] {
    return times_of(base, pools);
  };
  return problem;
}

PriceMixed price_on(const MixedProblem& problem) {
  return [&problem](const MixedJob& job) {
    PricedStep step;
    step.step_s = replay(mixed_workload(job, problem.operator_times()), *problem.topology, {})
                      .total.seconds();
    return step;
  };
}

// The parts of a space are spaces: its best is the best of theirs; and it does not depend on
// threads.
TEST(MixedPlans, TheBestOfTheSpaceIsTheBestOfItsParts) {
  const Topology topology = topology_from(
      "heterogeneous:gpus-a=4,gpus-b=4,gpus-per-server-a=4,"
      "gpus-per-server-b=4,npa=8,psn=2");
  MixedProblem problem = small_problem(topology);
  const auto nothing = [](std::int64_t) {};
  const MixedSearchResult whole = search_mixed(problem, price_on(problem), nothing);
  ASSERT_TRUE(whole.proven);
  EXPECT_GE(whole.families.size(), 4U);
  double best = 1e9;
  for (const std::int64_t tp : {1, 2}) {
    for (const std::int64_t size : {1, 2}) {
      for (const Sharding sharding : {Sharding::kNone, Sharding::kZero1}) {
        MixedProblem part = small_problem(topology);
        part.axes.tp = {tp};
        part.axes.micro_batch = {size};
        part.axes.sharding = {sharding};
        const MixedSearchResult found = search_mixed(part, price_on(part), nothing);
        EXPECT_TRUE(found.proven);
        best = std::min(best, found.plans.front().step.step_s);
      }
    }
  }
  EXPECT_EQ(whole.plans.front().step.step_s, best);
  problem.threads = 3;
  const MixedSearchResult threads = search_mixed(problem, price_on(problem), nothing);
  ASSERT_EQ(threads.plans.size(), whole.plans.size());
  for (std::size_t i = 0; i < whole.plans.size(); ++i) {
    EXPECT_EQ(plan_text(threads.plans[i]), plan_text(whole.plans[i]));
    EXPECT_EQ(threads.plans[i].step.step_s, whole.plans[i].step.step_s);
  }
  EXPECT_EQ(threads.work, whole.work);
}

// What mixing is for: a cluster's best is faster than any type alone, and than all cut alike.
TEST(MixedPlans, BothTypesTogetherAreFasterThanOne) {
  const Topology topology = topology_from(
      "heterogeneous:gpus-a=4,gpus-b=4,gpus-per-server-a=4,"
      "gpus-per-server-b=4,npa=8,psn=2");
  const MixedProblem problem = small_problem(topology);
  const MixedSearchResult result = search_mixed(problem, price_on(problem), [](std::int64_t) {});
  const MixedPlan& best = result.plans.front();
  EXPECT_EQ(best.job.gpus(), 8);
  std::int64_t microbatches = 0;
  for (const PipelineKind& kind : best.job.kinds) {
    microbatches += kind.pipelines() * kind.microbatches;
  }
  EXPECT_EQ(microbatches * best.job.base.micro_batch, 24);
  for (const MixedPlan& plan : result.families) {
    if (plan.family.ends_with("alone")) {
      EXPECT_GT(plan.step.step_s, best.step.step_s) << plan.family;
    }
  }
}

// Too little memory for all: the error says what was left out.
TEST(MixedPlans, NothingFits) {
  const Topology topology = topology_from(
      "heterogeneous:gpus-a=4,gpus-b=4,gpus-per-server-a=4,"
      "gpus-per-server-b=4,npa=8,psn=2");
  MixedProblem problem = small_problem(topology);
  for (GpuPool& pool : problem.pools) {
    pool.memory = Bytes(1 << 20);
  }
  try {
    search_mixed(problem, price_on(problem), [](std::int64_t) {});
    FAIL() << "nothing fits";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no plan is left"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::plan_mixed_property_test
