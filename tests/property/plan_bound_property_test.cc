// The closed forms of the planner are lower bounds: of a collective alone on the flow engine, and
// of a step as the replay finds it.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/vocabulary.h"
#include "planner/job/step_bound.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/tune.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/lone_collective.h"
#include "tests/support/random_job.h"
#include "tests/support/replayed_job.h"
#include "topologies/topology_file.h"

namespace lockstep {
namespace {

using testing::pick;

Time alone(const Topology& topology, const std::vector<std::int32_t>& ranks, CommType op,
           Bytes bytes) {
  const std::vector<NodeId> gpus = topology.gpus();
  LoneCollective collective;
  for (const std::int32_t rank : ranks) {
    collective.nodes.push_back(gpus[static_cast<std::size_t>(rank)]);
  }
  collective.bytes = bytes;
  const GroupShape shape = shape_of_nodes(topology, collective.nodes);
  CollectiveRequest request;
  request.op = op;
  request.bytes = bytes;
  const TunedRequest tuned = tune(std::move(request), shape, fabric_of(topology, gpus));
  collective.schedule =
      std::make_shared<const Schedule>(build_schedule(*tuned.algorithm, tuned.request, shape));
  return run_on_flow_engine(std::move(collective), topology, {}, {}).end;
}

TEST(PlanBound, NoCollectiveIsFaster) {
  Rng rng(5, "collective bound");
  for (const char* name : {"Spectrum-X:g=32", "AlibabaHPN:g=32", "DCN+:g=32", "single-switch:g=32",
                           "Spectrum-X:g=32,gps=4"}) {
    const Topology topology = topology_from(name);
    CollectiveBound bound(topology);
    for (int round = 0; round < 40; ++round) {
      RankLayout layout;
      layout.gpus = pick<std::int64_t>(rng, {8, 16, 32});
      layout.tp = pick<std::int64_t>(rng, {1, 2, 4, 8});
      const RankGroup kind = pick(rng, {RankGroup::kTp, RankGroup::kDpCp, RankGroup::kWorld});
      const CommType op = pick(rng, {CommType::kAllReduce, CommType::kAllGather,
                                     CommType::kReduceScatter, CommType::kAllToAll});
      const Bytes bytes(std::int64_t{1} << rng.between(3, 29));
      double fastest = 1e9;
      for (const std::vector<std::int32_t>& group : groups_of(layout, kind)) {
        if (group.size() > 1) {
          fastest = std::min(fastest, alone(topology, group, op, bytes).seconds());
        }
      }
      const double least = bound.least_s(layout, kind, op, bytes);
      EXPECT_LE(least, fastest * (1 + 1e-9))
          << name << " tp " << layout.tp << " of " << layout.gpus << ", " << name_of(kind) << ", "
          << name_of(op) << " of " << bytes.count() << " B";
    }
  }
}

TEST(PlanBound, NoStepIsFaster) {
  Rng rng(6, "step bound");
  double sum = 0;
  int jobs = 0;
  for (int round = 0; round < 120; ++round) {
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
    job = with_padded_vocabulary(std::move(job));
    check_job(job);
    const Topology topology =
        topology_from(pick<const char*>(rng, {"Spectrum-X:g=64", "DCN+:g=64"}));
    const OperatorTime time = testing::roofline_of(job);
    StepBound bound(topology, time);
    const double replayed = testing::replay_job(job, topology, time).total.seconds();
    const double least = bound.of(job).step_s;
    EXPECT_LE(least, replayed) << round << ": tp " << job.tp << " cp " << job.cp << " pp " << job.pp
                               << " vpp " << job.vpp << " of " << job.gpus << ", ep " << job.ep
                               << ", ZeRO-" << static_cast<int>(job.sharding) << " "
                               << job.schedule;
    EXPECT_LE(bound.busy_s(job), least * (1 + 1e-6)) << round;
    sum += least / replayed;
    ++jobs;
  }
  EXPECT_GT(jobs, 60);
  std::printf("the bound is %.1f %% of the replay, the mean of %d jobs\n", 100 * sum / jobs, jobs);
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
}  // namespace lockstep
