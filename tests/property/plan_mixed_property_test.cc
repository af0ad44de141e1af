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
#include "planner/job/mixed_leaves.h"
#include "planner/job/mixed_search.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/tune.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/step_simulation.h"
#include "tests/support/random_job.h"
#include "tests/support/replayed_job.h"
#include "tests/support/sanitized.h"
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
  base.tp = pick<std::int64_t>(rng, {1, 2, 4});
  base.sequence_parallel = base.tp > 1 && rng.below(2) == 0;
  const bool moe = (base.tp == 1 || base.sequence_parallel) && rng.below(3) == 0;
  base.model = rng.below(2) == 0 ? testing::llama(layers, 256, 8, 8, 512, 32000, moe ? 8 : 0)
                                 : testing::llama(layers, 2048, 16, 8, 8192, 32000, moe ? 8 : 0);
  base.cp = base.tp < 4 ? pick<std::int64_t>(rng, {1, 1, 2}) : 1;
  base.context_comm =
      pick(rng, {ContextComm::kRing, ContextComm::kAllGather, ContextComm::kAllToAll});
  mixed.copies = base.tp * base.cp < 4 ? rng.between(1, 2) : 1;
  if (moe) {
    base.expert_tp = pick<std::int64_t>(rng, {0, 1});
    const std::vector<std::int64_t> eps = divisors(8, mixed.width() / expert_tp(base));
    base.ep = eps[rng.below(eps.size())];
    base.ep = mixed.width() % (base.ep * expert_tp(base)) == 0 ? base.ep : 1;
  }
  base.gpus = mixed.width();
  base.seq = 512;
  base.micro_batch = pick<std::int64_t>(rng, {1, 2});
  base.recompute = pick(rng, {Recompute::kNone, Recompute::kFull});
  base.sharding = pick(rng, {Sharding::kNone, Sharding::kZero1, Sharding::kZero3});
  base.gradient_bucket = pick<std::int64_t>(rng, {0, 20'000, 1'000'000});
  base.overlap_gradients = rng.below(4) > 0;
  base.overlap_parameters = rng.below(2) == 0;
  base.host_launch = rng.below(4) == 0 ? Time::us(3) : Time();
  base = with_padded_vocabulary(std::move(base));
  std::vector<std::vector<std::int32_t>> slots;
  std::vector<std::int64_t> counts;
  for (const GpuPool& pool : pools) {
    slots.push_back(pool.slots(mixed.width(), base.tp));
    counts.push_back(std::min<std::int64_t>(std::ssize(slots.back()), 6));
  }
  const std::vector<Division> all = divisions(counts, layers);
  const Division& division = all[rng.below(all.size())];
  const bool alike = std::ranges::all_of(division, [&](const PipelineForm& form) {
    return form.types.size() == division.front().types.size();
  });
  if (base.sharding == Sharding::kZero3) {
    std::int64_t pipelines = 0;
    for (const PipelineForm& form : division) {
      pipelines += form.pipelines;
    }
    if (!moe && mixed.copies * base.cp > 1) {
      base.hsdp_replicas = pipelines;  // each by itself, whatever the others are like
    } else if (!alike) {
      base.sharding = Sharding::kZero1;
    } else if (rng.below(2) == 0) {
      base.sharding = Sharding::kZero2;
    }
  }
  const bool same = base.sharding > Sharding::kZero1 && base.hsdp_replicas == 1;
  const std::int64_t most_chunks = rng.between(1, 3);
  std::vector<std::size_t> next(slots.size());
  base.global_batch = 0;
  for (const PipelineForm& form : division) {
    PipelineKind& kind = mixed.kinds.emplace_back();
    const auto depth = std::ssize(form.types);
    const std::int64_t chunks = depth == 1 ? 1 : std::min(most_chunks, layers / depth);
    kind.microbatches = chunks > 1 ? depth * rng.between(1, 2) : rng.between(1, 6);
    kind.gpu_type = form.types;
    kind.layers = random_split(rng, layers, form.types.size() * static_cast<std::size_t>(chunks));
    if (same) {
      kind.microbatches = mixed.kinds.front().microbatches;
      kind.layers = mixed.kinds.front().layers;
    }
    kind.first_rank.assign(static_cast<std::size_t>(form.pipelines),
                           std::vector<std::int32_t>(form.types.size()));
    const bool by_stage = rng.below(2) == 0;
    const std::size_t rows = kind.first_rank.size(), columns = form.types.size();
    for (std::size_t i = 0; i < rows * columns; ++i) {
      const std::size_t p = by_stage ? i % rows : i / columns;
      const std::size_t s = by_stage ? i / rows : i % columns;
      kind.first_rank[p][s] = slots[form.types[s]][next[form.types[s]]++];
    }
    base.global_batch += kind.microbatches * kind.pipelines() * mixed.copies * base.micro_batch;
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
  const int rounds = testing::cases_of(200);
  int context = 0, experts = 0, chunks = 0, zero2 = 0, zero3 = 0, hybrid = 0;
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
    const Job& base = mixed.base;
    context += base.cp > 1 ? 1 : 0;
    experts += base.ep > 1 ? 1 : 0;
    chunks += std::ranges::any_of(mixed.kinds, [](const auto& kind) { return kind.chunks() > 1; });
    zero2 += base.sharding == Sharding::kZero2 ? 1 : 0;
    zero3 += base.sharding == Sharding::kZero3 && base.hsdp_replicas == 1 ? 1 : 0;
    hybrid += base.hsdp_replicas > 1 ? 1 : 0;
  }
  for (const int some : {context, experts, chunks, zero2, zero3, hybrid}) {
    if (rounds == 200) {  // fewer need not hold them all
      EXPECT_GE(some, 8) << context << experts << chunks << zero2 << zero3 << hybrid;
    }
  }
  std::printf("the bound is %.1f %% of the replay, the mean of %d jobs\n", 100 * sum / rounds,
              rounds);
}

// All pipelines alike, stage by stage: the ranks, programs and groups of the usual job.
TEST(MixedPlans, AlikePipelinesAreTheUsualJob) {
  Rng rng(8, "alike pipelines");
  const Topology topology = topology_from("Spectrum-X:g=16,gps=8");
  for (int round = 0; round < testing::cases_of(60); ++round) {
    Job job;
    const std::int64_t layers = rng.between(4, 10);
    const bool moe = rng.below(3) == 0;
    job.model = testing::llama(layers, 512, 8, 8, 1024, 32000, moe ? 8 : 0);
    job.tp = pick<std::int64_t>(rng, {1, 2});
    job.sequence_parallel = job.tp > 1;
    job.cp = pick<std::int64_t>(rng, {1, 1, 2});
    job.pp = pick<std::int64_t>(rng, {1, 2, 4});
    job.vpp = job.pp > 1 ? rng.between(1, layers / job.pp) : 1;
    job.gpus = 16;
    MixedJob mixed;
    mixed.copies = job.dp() > 1 ? rng.between(1, 2) : 1;
    if (moe) {
      job.expert_tp = 1;
      job.ep = pick<std::int64_t>(rng, {1, job.tp * job.cp * mixed.copies});
    }
    job.seq = 512;
    job.global_batch = job.dp() * (job.vpp > 1 ? job.pp * rng.between(1, 2) : rng.between(1, 5));
    job.sharding =
        pick(rng, {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3});
    const std::int64_t pipelines = job.dp() / mixed.copies;
    if (job.sharding == Sharding::kZero3 && !moe && pipelines < job.dp() * job.cp) {
      job.hsdp_replicas = pipelines;
    }
    job.gradient_bucket = pick<std::int64_t>(rng, {0, 100'000});
    job.stage_layers = random_split(rng, layers, static_cast<std::size_t>(job.pp * job.vpp));
    job = with_padded_vocabulary(std::move(job));
    mixed.base = job;
    mixed.gpu_types = {"H100"};
    PipelineKind& kind = mixed.kinds.emplace_back();
    kind.microbatches = job.microbatches();
    kind.layers = job.stage_layers;
    kind.gpu_type.assign(static_cast<std::size_t>(job.pp), 0);
    for (std::int64_t p = 0; p < pipelines; ++p) {
      std::vector<std::int32_t>& ranks = kind.first_rank.emplace_back();
      for (std::int64_t s = 0; s < job.pp; ++s) {
        ranks.push_back(static_cast<std::int32_t>(mixed.width() * (s * pipelines + p)));
      }
    }
    const std::vector<OperatorTime> times = {testing::roofline_of(job)};
    const Time usual = testing::replay_job(job, topology, times.front()).total;
    const Time ours = replay(mixed_workload(mixed, times), topology, {}).total;
    EXPECT_EQ(ours.count_ps(), usual.count_ps()) << round << ": " << plan_text(job);
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

/// Every plan of a space, each replayed. Checks what the search relies on: what is known of a node,
/// then of a leaf, then its closed form only grow, and end below the replay; and all plans keep
/// their memory.
struct AllPlans {
  double best_s = 1e9;
  Bytes least_memory = Bytes(std::int64_t{1} << 60);
  std::int64_t plans = 0;
};
AllPlans price_all(const MixedProblem& problem) {
  MixedBound bound(*problem.topology, problem.pools, problem.operator_times());
  MixedLeaves leaves(problem, bound);
  const PriceMixed price = price_on(problem);
  AllPlans all;
  for (std::size_t node = 0; node < leaves.nodes(); ++node) {
    const double least = leaves.least(node).step_s;
    for (const std::size_t id : leaves.expand(node)) {
      const MixedPlan plan = leaves.plan(id);
      const double floor = bound.of(with_model(problem.base, plan.job)).step_s;
      const double step = price(with_model(problem.base, plan.job)).step->step_s;
      EXPECT_LE(least, leaves.busy_s(id)) << plan_text(plan);
      EXPECT_LE(leaves.busy_s(id), floor * (1 + 1e-8)) << plan_text(plan);
      EXPECT_LE(floor, step) << plan_text(plan);
      EXPECT_LE(plan.full, 1) << plan_text(plan);
      all.best_s = std::min(all.best_s, step);
      all.least_memory = std::min(all.least_memory, plan.memory);
      ++all.plans;
    }
  }
  return all;
}

// Small spaces of all axes, and of models with experts: the search finds the best that there is.
TEST(MixedPlans, NoPlanOfTheSpaceIsBetter) {
  const Topology topology = topology_from(
      "heterogeneous:gpus-a=4,gpus-b=4,gpus-per-server-a=2,"
      "gpus-per-server-b=4,npa=8,psn=2");
  for (const bool experts : {false, true}) {
    if (testing::is_sanitized() && !experts) {
      continue;  // four times as many plans, by the same code
    }
    MixedProblem problem = small_problem(topology);
    problem.base.model = testing::llama(6, 1024, 8, 8, 4096, 8192, experts ? 4 : 0);
    problem.base.global_batch = 12;
    problem.axes.micro_batch = {1};
    problem.axes.cp = {1, 2};
    problem.axes.tp = {experts ? 1 : 2};
    problem.axes.vpp = {1, 2};
    problem.axes.ep = experts ? std::vector<std::int64_t>{1, 2, 4} : std::vector<std::int64_t>{};
    for (const bool limited : {false, true}) {
      const MixedSearchResult found = search_mixed(problem, price_on(problem), [](std::int64_t) {});
      ASSERT_TRUE(found.proven);
      const AllPlans all = price_all(problem);
      EXPECT_EQ(found.plans.front().step.step_s, all.best_s) << limited;
      EXPECT_GT(all.plans, 30);
      EXPECT_LE(found.leaves, all.plans);
      for (GpuPool& pool : problem.pools) {  // the best does not fit any more
        pool.memory = Bytes((found.plans.front().memory.count() + all.least_memory.count()) / 2);
      }
    }
  }
}

// What is pinned is in all plans, and what is forbidden in none.
TEST(MixedPlans, PinsHold) {
  const Topology topology = topology_from(
      "heterogeneous:gpus-a=4,gpus-b=4,gpus-per-server-a=4,"
      "gpus-per-server-b=4,npa=8,psn=2");
  MixedProblem problem = small_problem(topology);
  problem.axes.cp = {2};
  problem.axes.vpp = {2};
  problem.axes.sharding = {Sharding::kZero2};
  const MixedSearchResult result = search_mixed(problem, price_on(problem), [](std::int64_t) {});
  for (const MixedPlan& plan : result.plans) {
    EXPECT_EQ(plan.job.base.cp, 2);
    EXPECT_EQ(plan.job.base.sharding, Sharding::kZero2);
    for (const PipelineKind& kind : plan.job.kinds) {
      EXPECT_EQ(kind.chunks(), kind.stages() > 1 ? 2 : 1);
    }
  }
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
      for (const Sharding sharding :
           {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3}) {
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
