// Slow GPUs among replicas of many microbatches: what repeats itself is told in turns, and nothing
// becomes another by it. Jobs drawn at random, of which every rank's end and every operation of
// rank 0 is compared with a simulation without folds.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "generator/exact/exact_workload.h"
#include "tests/support/random_job.h"
#include "tests/support/replayed_job.h"
#include "topologies/topology_file.h"

namespace lockstep::slow_replicas_property_test {
namespace {

TEST(SlowReplicas, FoldedDoAsInFull) {
  constexpr std::uint64_t kSeed = 14;
  Rng rng(kSeed, "whole parts");
  for (int jobs = 0; jobs < 30;) {
    Job job = testing::random_job(rng);
    const auto replicas = testing::pick<std::int64_t>(rng, {2, 3, 4});
    job.gpus *= replicas;
    job.global_batch *= replicas * testing::pick<std::int64_t>(rng, {4, 8, 12});
    if (job.gpus > 32 || job.gpus % 8 != 0 || job.pp == 1) {
      continue;
    }
    ++jobs;
    std::vector<std::string> slow;
    std::vector<Straggler> stragglers;
    for (std::uint64_t i = 0; i <= rng.below(2); ++i) {
      slow.push_back(
          fmt::format("gpu:{}:{}", rng.below(static_cast<std::uint64_t>(job.gpus)),
                      testing::pick<std::string>(rng, {"1.0001", "1.01", "1.1", "1.5", "4"})));
      stragglers.push_back(Straggler::parse(slow.back()));
    }
    StepOptions options;
    options.verify_symmetry = true;  // an error where anything differs
    options.stragglers = stragglers;
    FlowOptions flow;
    flow.routes.spray = rng.below(4) > 0;
    const Topology topology = topology_from(
        fmt::format("Spectrum-X:g={},bw={}Gbps", job.gpus, testing::pick(rng, {1, 40, 400})));
    if (job.gpus > 16) {
      continue;  // takes long in full
    }
    const Workload workload = exact_workload(job, testing::roofline_of(job));
    ASSERT_NO_THROW(testing::replay_workload(workload, topology, flow, options))
        << "job " << jobs << ", " << fmt::format("{}", fmt::join(slow, " "));
  }
}

}  // namespace
}  // namespace lockstep::slow_replicas_property_test
