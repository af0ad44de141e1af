// What simulations of one step share changes none of them.
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "generator/exact/exact_workload.h"
#include "simulator/replay/shared_step.h"
#include "tests/support/random_job.h"
#include "tests/support/replayed_job.h"
#include "tests/support/sanitized.h"
#include "topologies/topology_file.h"

namespace lockstep::shared_step_property_test {
namespace {

void expect_same(const StepResult& a, const StepResult& b, const std::string& what) {
  EXPECT_EQ(a.total, b.total) << what;
  EXPECT_EQ(a.compute, b.compute) << what;
  EXPECT_EQ(a.exposed_by_group, b.exposed_by_group) << what;
  EXPECT_EQ(a.first_rank_end, b.first_rank_end) << what;
  EXPECT_EQ(a.last_rank_end, b.last_rank_end) << what;
  EXPECT_EQ(a.flows, b.flows) << what;
}

TEST(SharedStepProperty, ChangesNoResult) {
  Rng rng(7, "shared step");
  int jobs = 0;
  while (jobs < (testing::is_sanitized() ? 3 : 12)) {
    const Job job = testing::random_job(rng);
    if (job.gpus > 64 || job.gpus % 8 != 0) {
      continue;
    }
    ++jobs;
    const Topology topology = topology_from(fmt::format("Spectrum-X:g={}", job.gpus));
    const Workload workload = exact_workload(job, testing::roofline_of(job));
    const auto slow = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(job.gpus)));
    // Nobody, a GPU, all of them by chance, and a link, whose layout is not the others'.
    const std::vector<std::vector<Straggler>> runs = {
        {},
        {Straggler::parse(fmt::format("gpu:{}:1.5", slow))},
        {Straggler::parse(fmt::format("jitter:0-{}:normal:0.1", job.gpus - 1))},
        {Straggler::parse(fmt::format("nic:{}:0.5", slow))},
        {}};
    std::vector<StepResult> alone(runs.size()), together(runs.size());
    SharedStep shared(runs.size() - 2);  // of which one is left without, and makes its own again
    for (int threads : {1, 2}) {
      for_each_in_parallel(runs.size(), threads, [&](std::size_t i) {
        StepOptions options;
        options.stragglers = runs[i];
        options.seed = 3;
        FlowOptions flow;
        flow.routes.spray = true;
        alone[i] = testing::replay_workload(workload, topology, flow, options);
        options.shared = &shared;
        options.with_ports = i % 2 == 0;
        together[i] = testing::replay_workload(workload, topology, flow, options);
      });
      for (std::size_t i = 0; i < runs.size(); ++i) {
        expect_same(alone[i], together[i], fmt::format("job {}, run {}", jobs, i));
      }
    }
  }
}

// Hashed ways collide here and there, so that most ranks or all differ: each is simulated, on what
// folded steps run on.
TEST(SharedStepProperty, RanksOfWhichNoTwoAreAlikeDoAsInFull) {
  Rng rng(8, "hashed step");
  int jobs = 0;
  while (jobs < (testing::is_sanitized() ? 3 : 12)) {
    const Job job = testing::random_job(rng);
    if (job.gpus > 32 || job.gpus % 4 != 0) {
      continue;
    }
    ++jobs;
    const Topology topology = topology_from(
        testing::pick<std::string>(rng, {"fat-tree:k=6,gps=2", "fat-tree:k=8,gps=4"}));
    StepOptions options;
    options.verify_symmetry = true;  // an error where anything differs
    const std::vector<Straggler> slow(rng.below(2), Straggler::parse("gpu:1:1.3"));
    options.stragglers = slow;
    EXPECT_NO_THROW(testing::replay_workload(exact_workload(job, testing::roofline_of(job)),
                                             topology, {}, options))
        << jobs;
  }
}

}  // namespace
}  // namespace lockstep::shared_step_property_test
