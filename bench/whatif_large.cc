// The analysis of a large made-up job: dp_ranks x 16 stages, 100 steps, 48 microbatches; all
// figures and causes, no files. Arguments: dp_ranks (625 unless given), steps (100).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sys/resource.h>

#include "analysis/whatif/causes.h"
#include "base/rng.h"
#include "tests/support/made_up_steps.h"

namespace {

using namespace lockstep;
using namespace lockstep::whatif;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double uniform(const TraceRow& row) {
  return row.optype == TraceOp::kForwardCompute    ? 0.25
         : row.optype == TraceOp::kBackwardCompute ? 0.5
         : row.optype == TraceOp::kGc              ? 0
                                                   : 1.0 / 64;
}

/// One step of one dp_rank is played; the others are like it, up to a factor a step and, for
/// computation, a draw.
OpTable large_table(std::int32_t dp, std::int64_t steps) {
  Trace one = testing::play({.dp = 1, .stages = 16, .microbatches = 48, .steps = 1},
                            [](const TraceRow& row) { return static_cast<float>(uniform(row)); });
  OpTable small = make_op_table(one, "made up", {}, nullptr);
  OpTable table;
  table.nodes = small.nodes;
  table.dp = dp;
  table.stages = small.stages;
  for (std::int32_t w = 0; w < dp * table.stages; ++w) {
    table.ranks.push_back(w);
  }
  for (std::int64_t s = 0; s < steps; ++s) {
    table.steps.push_back(s);
  }
  table.start_s.resize(table.size());
  table.duration_s.resize(table.size());
  Rng rng(1, "large");
  const std::size_t lanes = table.lanes();
  for (std::size_t n = 0; n < table.nodes.size(); ++n) {
    const bool draws = is_compute(table.nodes[n].type);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float factor = 1 + static_cast<float>(lane / static_cast<std::size_t>(dp) % 7) / 64;
      const float noise = draws ? 1 + static_cast<float>(rng.next() >> 60) / 64 : 1;
      table.start_s[n * lanes + lane] = small.start_s[n] * factor;
      table.duration_s[n * lanes + lane] = small.duration_s[n] * factor * noise;
    }
  }
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int32_t dp = argc > 1 ? std::atoi(argv[1]) : 625;
  const std::int64_t steps = argc > 2 ? std::atoi(argv[2]) : 100;
  const OpTable table = large_table(dp, steps);
  std::printf("%d workers, %lld steps, %.1f million operations\n", dp * table.stages,
              static_cast<long long>(steps), static_cast<double>(table.size()) / 1e6);
  const double begin = cpu_seconds();
  const auto wall = std::chrono::steady_clock::now();
  const auto report = [&](const char* what) {
    std::printf("%-24s %6.1f s of CPU\n", what, cpu_seconds() - begin);
    std::fflush(stdout);
  };
  const DependencyGraph graph =
      make_dependency_graph(table, JobMeta{.dsp_size = 2}, "made up", nullptr);
  const Simulator simulator(table, graph, "made up");
  const Traced traced = measure(table, graph);
  report("transfers");
  const Model model = make_model(table, graph, simulator, traced,
                                 {traced.step_start_s.begin(), traced.step_start_s.end()});
  report("T and I");
  const Scene scene{table, graph, simulator, traced, model};
  const Decompositions parts = take_apart(scene);
  report("decompositions");
  const Decomposition workers = blocking_by_worker(scene);
  report("every worker alone");
  const Causes causes = find_causes(scene, parts, workers.ratio, workers.per_step,
                                    contribution(scene, last_stage(table)));
  report("causes and remedies");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("S = %.4f; wall %.1f s, peak memory %.1f GB\n", causes.slowdown,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count(),
              static_cast<double>(usage.ru_maxrss) / 1e6);
}
