// The closed forms of the planner are lower bounds: of a collective alone on the flow engine, and
// of a step as the replay finds it.
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/vocabulary.h"
#include "planner/job/step_bound.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/tune.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/replay.h"
#include "tests/support/random_job.h"
#include "tests/support/replayed_job.h"
#include "tests/support/sanitized.h"
#include "topologies/topology_file.h"

namespace lockstep::plan_bound_property_test {
namespace {

using testing::pick;

/// LOCKSTEP_ROUNDS asks for more than the suite has time for.
int rounds_or(int usual) {
  const char* text = std::getenv("LOCKSTEP_ROUNDS");
  return text == nullptr ? testing::cases_of(usual) : std::atoi(text);
}

/// A fabric of at least so many GPUs, with rates, planes and oversubscription of all kinds.
std::string random_fabric(Rng& rng, std::int64_t gpus) {
  if (rng.below(4) == 0) {
    return pick<std::string>(
        rng,
        {fmt::format("pods:g={},pods=2,npa=16,psn=2,csn=2", gpus),
         fmt::format("heterogeneous:gpus-a={0},gpus-b={0},npa=16,psn=2", gpus / 2),
         fmt::format("heterogeneous:gpus-a={0},gpus-b={0},gpus-per-server-a=4,ro=false", gpus / 2),
         "nvlink-racks:racks=4,gps=16,rpl=2,psn=2", "fat-tree:k=8,gps=4", "torus:s=4x4x4,gpr=1",
         "torus:s=4x4,gpr=4,gps=4", "dragonfly:p=8,a=4,gl=1", fmt::format("full-mesh:g={}", gpus)});
  }
  const auto server = pick<std::int64_t>(rng, {2, 4, 8, 8});
  const std::string name = pick<const char*>(
      rng, {"Spectrum-X", "AlibabaHPN", "DCN+", "plain", "rail-optimised", "single-switch"});
  std::string text = fmt::format(
      "{}:g={},gps={},nic={}Gbps,nvlink={}Gbps,l={}ms,nl={}ms,gt={}", name, gpus, server,
      pick<int>(rng, {25, 100, 400, 3200}), pick<int>(rng, {200, 2400, 2880, 7200}),
      pick<const char*>(rng, {"0.0005", "0.02"}), pick<const char*>(rng, {"0.000025", "0.001"}),
      pick<const char*>(rng, {"H100", "A100", "V100", "B200"}));
  if (name != "single-switch") {
    text += fmt::format(",nsps={},npa={},psn={},uplink={}Gbps", pick<int>(rng, {1, 1, 4}),
                        pick<int>(rng, {8, 16, 64}), pick<int>(rng, {1, 4, 16}),
                        pick<int>(rng, {100, 400}));
  }
  return text;
}

FlowOptions random_routes(Rng& rng) {
  FlowOptions flow;
  flow.routes.pxn = rng.below(2) == 0;
  flow.routes.spray = rng.below(3) == 0;
  flow.routes.rail_affinity = rng.below(4) == 0;
  return flow;
}

std::string text_of(const FlowOptions& flow) {
  return fmt::format("{}{}{}", flow.routes.pxn ? " pxn" : "", flow.routes.spray ? " sprayed" : "",
                     flow.routes.rail_affinity ? " affinity" : "");
}

/// How long the rank that is done first is at it, after the first of them has entered.
double soonest_s(const Topology& topology, const std::vector<std::int32_t>& ranks, CommType op,
                 Bytes bytes, const FlowOptions& flow, Rng& rng) {
  const std::vector<NodeId> gpus = topology.gpus();
  RankPrograms work;
  std::vector<NodeId> nodes;
  std::vector<std::int32_t> all;
  const bool together = rng.below(2) == 0;
  for (const std::int32_t rank : ranks) {
    Program program({StreamOrder::kProgram});
    ProgramOp wait, entry;
    wait.lead = nodes.empty() || together ? Time() : Time::us(rng.between(0, 200));
    entry.comm = op;
    entry.bytes = bytes;
    entry.family = 0;
    const std::vector<std::int32_t> before = {program.add(wait, {})};
    program.add(entry, before);
    program.finish();
    all.push_back(static_cast<std::int32_t>(nodes.size()));
    work.programs.push_back(std::move(program));
    nodes.push_back(gpus[static_cast<std::size_t>(rank)]);
  }
  work.families.emplace_back(GroupKind::kWorld, std::vector<std::vector<std::int32_t>>{all},
                             static_cast<std::int32_t>(all.size()));
  work.program_of_rank = all;
  FlowEngine engine(topology, flow);
  const NcclFabric fabric = fabric_of(topology, gpus);
  ReplayOptions options;
  options.send_latency = Time();
  const ReplayResult result = replay(
      work, nodes, topology, engine,
      [&](CommType, Bytes, const GroupShape& shape) {
        CollectiveRequest request;
        request.op = op;
        request.bytes = bytes;
        TunedRequest tuned = tune(std::move(request), shape, fabric);
        keep_ranks_alike(tuned, shape);
        return std::make_shared<const Schedule>(
            build_schedule(*tuned.algorithm, tuned.request, shape));
      },
      options);
  return std::ranges::min(result.rank_end).seconds();
}

TEST(PlanBound, NoCollectiveIsFaster) {
  Rng rng(5, "collective bound");
  const int rounds = rounds_or(120);
  for (int fabric = 0; fabric < rounds; ++fabric) {
    const std::string name = random_fabric(rng, 32);
    const Topology topology = topology_from(name);
    const FlowOptions flow = random_routes(rng);
    CollectiveBound bound(topology);
    for (int round = 0; round < 8; ++round) {
      RankLayout layout;
      layout.gpus = pick<std::int64_t>(rng, {8, 16, 32});
      layout.tp = pick<std::int64_t>(rng, {1, 2, 4, 8});
      layout.ep = pick<std::int64_t>(rng, {1, 2, 8, layout.gpus});
      const RankGroup kind = pick(rng, {RankGroup::kTp, RankGroup::kDpCp, RankGroup::kEp,
                                        RankGroup::kExpertDp, RankGroup::kWorld});
      const CommType op =
          pick(rng, {CommType::kAllReduce, CommType::kAllGather, CommType::kReduceScatter,
                     CommType::kAllToAll, CommType::kAllToAll});
      const Bytes bytes(std::int64_t{1} << rng.between(3, 29));
      double fastest = 1e9;
      for (const std::vector<std::int32_t>& group : groups_of(layout, kind)) {
        if (group.size() > 1) {
          fastest = std::min(fastest, soonest_s(topology, group, op, bytes, flow, rng));
        }
      }
      const double least = bound.least_s(layout, kind, op, bytes);
      EXPECT_LE(least, fastest * (1 + 1e-9))
          << name << text_of(flow) << " tp " << layout.tp << " of " << layout.gpus << ", "
          << name_of(kind) << ", " << name_of(op) << " of " << bytes.count() << " B";
    }
  }
}

TEST(PlanBound, NoStepIsFaster) {
  Rng rng(6, "step bound");
  double sum = 0;
  int jobs = 0;
  const int rounds = rounds_or(200);
  for (int round = 0; round < rounds; ++round) {
    Job job = testing::random_job(rng);
    if (job.gpus > 64) {
      continue;
    }
    if (rng.below(2) == 0) {  // large enough for sizes to matter
      const std::int64_t layers = job.model.blocks.front().layers;
      job.model =
          testing::llama(layers, 2048, 16, 8, 8192, 32000,
                         job.model.blocks.front().modules.back().kind == ModuleKind::kMoe ? 8 : 0);
      job.seq = 1024;
    }
    job.rank_order = job.ep == 1 && job.expert_tp == 0 && job.cp == 1
                         ? pick<std::string>(rng, {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"})
                         : job.rank_order;
    job.moe_capacity = pick<double>(rng, {0, 0, 1, 1.5});
    job.moe_imbalance = job.moe_capacity == 0 && job.ep > 1 ? pick<double>(rng, {1, 1, 1.4}) : 1;
    job.host_launch = rng.below(4) == 0 ? Time::us(3) : Time();
    if (job.sharding == Sharding::kZero3 && job.dp() * job.cp % 2 == 0 &&
        layout_of(job).expert_dp() % 2 == 0 && rng.below(2) == 0) {
      job.hsdp_replicas = 2;
    }
    if (job.pp > 1 && rng.below(3) == 0) {  // any layers a stage, each one at least
      job.stage_layers.assign(static_cast<std::size_t>(job.pp * job.vpp), 1);
      const std::int64_t layers = job.model.blocks.front().layers;
      for (std::int64_t left = layers - job.pp * job.vpp; left > 0; --left) {
        ++job.stage_layers[rng.below(job.stage_layers.size())];
      }
    }
    job.flash_attention = job.recompute != Recompute::kSelective && rng.below(4) > 0;
    job = with_padded_vocabulary(std::move(job));
    check_job(job);
    const std::string name = random_fabric(rng, 64);
    const Topology topology = topology_from(name);
    const FlowOptions flow = random_routes(rng);
    const OperatorTime time = testing::roofline_of(job);
    StepBound bound(topology, time);
    const double replayed = testing::replay_job(job, topology, time, flow).total.seconds();
    const double least = bound.of(job).step_s;
    EXPECT_LE(least, replayed) << round << ": tp " << job.tp << " cp " << job.cp << " pp " << job.pp
                               << " vpp " << job.vpp << " of " << job.gpus << ", ep " << job.ep
                               << " etp " << job.expert_tp << ", ZeRO-"
                               << static_cast<int>(job.sharding) << " " << job.schedule << " on "
                               << name << text_of(flow);
    EXPECT_LE(bound.busy_s(job), least * (1 + 1e-6)) << round;
    EXPECT_LE(bound.of(job, 0).step_s, least * (1 + 1e-9)) << round << ": passes summed";
    sum += least / replayed;
    ++jobs;
  }
  EXPECT_GT(jobs, rounds / 2);
  std::printf("the bound is %.1f %% of the replay, the mean of %d jobs\n", 100 * sum / jobs, jobs);
}

// With a split backward pass gradients are summed in other buckets than parameters are gathered.
TEST(PlanBound, NoStepIsFasterWhereTheBackwardPassIsSplit) {
  const Topology topology = topology_from("Spectrum-X:g=8,gps=2,nvlink=400Gbps");
  for (const std::int64_t bucket : {0, 1, 20'000, 1'000'000}) {
    for (const std::int64_t pp : {1, 2}) {
      for (const Sharding sharding : {Sharding::kZero1, Sharding::kZero2}) {
        Job job;
        job.model = testing::llama(12, 256, 8, 8, 512, 32000);
        job.pp = pp;
        job.gpus = 2 * pp;
        job.seq = 512;
        job.global_batch = 2 * pp;
        job.schedule = "zb-h1";
        job.sharding = sharding;
        job.gradient_bucket = bucket;
        job = with_padded_vocabulary(std::move(job));
        check_job(job);
        const OperatorTime time = testing::roofline_of(job);
        EXPECT_LE(StepBound(topology, time).of(job).step_s,
                  testing::replay_job(job, topology, time).total.seconds())
            << bucket << " parameters a bucket, " << pp << " stages";
      }
    }
  }
}

// With thousands of microbatches sums say what a walk says, to thousandths; less where passes of
// one chunk come together (GPipe, interleaving) and stages differ.
TEST(PlanBound, PassesAreSummedWhereTheyAreMany) {
  const Topology topology = topology_from("Spectrum-X:g=16");
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    for (const std::int64_t vpp : {1, 2}) {
      for (const Sharding sharding : {Sharding::kNone, Sharding::kZero2, Sharding::kZero3}) {
        Job job;
        job.model = testing::llama(9, 1024, 8, 8, 4096, 32000);
        job.pp = 4;
        job.vpp = std::string_view(schedule) == "zb-h1" ? 1 : vpp;
        job.gpus = 16;
        job.seq = 512;
        job.stage_layers = job.vpp == 1 ? std::vector<std::int64_t>{2, 3, 2, 2}
                                        : std::vector<std::int64_t>{1, 1, 1, 1, 2, 1, 1, 1};
        job.global_batch = 4 * kMostWalked;
        job.schedule = schedule;
        job.sharding = sharding;
        job = with_padded_vocabulary(std::move(job));
        check_job(job);
        StepBound bound(topology, testing::roofline_of(job));
        const double walked = bound.of(job).step_s, summed = bound.of(job, 0).step_s;
        EXPECT_LE(summed, walked * (1 + 1e-9)) << schedule << vpp;
        EXPECT_LE(bound.busy_s(job), summed * (1 + 1e-9)) << schedule << vpp;
        if (vpp > 1 || std::string_view(schedule) == "gpipe") {
          EXPECT_GT(summed, walked * 0.7) << schedule << vpp;  // each chunk has its slowest stage
          continue;
        }
        EXPECT_GT(summed, walked * 0.998) << schedule << vpp;
        job.global_batch *= 64;
        EXPECT_NEAR(bound.of(job).step_s / walked, 64, 0.1) << schedule << vpp;
      }
    }
  }
}

// One GPU and no communication: the bound is the step.
TEST(PlanBound, IsTheStepOfOneGpu) {
  Job job;
  job.model = testing::llama(4, 1024, 8, 8, 4096, 8192);
  job.seq = 512;
  job.global_batch = 8;
  const Topology topology = topology_from("single-switch:g=8");
  const OperatorTime time = testing::roofline_of(job);
  const double replayed = testing::replay_job(job, topology, time).total.seconds();
  EXPECT_NEAR(StepBound(topology, time).of(job).step_s / replayed, 1, 1e-8);
}

}  // namespace
}  // namespace lockstep::plan_bound_property_test
