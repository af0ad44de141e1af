#include "generator/exact/exact_workload.h"

#include <benchmark/benchmark.h>

#include "tests/support/exact_models.h"
#include "workloads/validate.h"

namespace lockstep {
namespace {

/// Llama 3 405B: 126 layers, tp 8, pp 16, sequences of 8192. Args: GPUs, microbatches.
Job llama_405b(std::int64_t gpus, std::int64_t microbatches) {
  Job job;
  job.model = testing::llama(126, 16384, 128, 8, 53248, 128256);
  job.gpus = gpus;
  job.tp = 8;
  job.pp = 16;
  job.sequence_parallel = true;
  job.seq = 8192;
  job.global_batch = microbatches * job.dp();
  job.sharding = Sharding::kZero1;
  return job;
}

Time at_half_peak(const Operator& op) { return Time::seconds(op.flops / 500e12); }

void build(benchmark::State& state) {
  const Job job = llama_405b(state.range(0), state.range(1));
  std::size_t operations = 0;
  for (auto _ : state) {
    const Workload workload = exact_workload(job, at_half_peak);
    operations = 0;
    for (const OpProgram& program : std::get<OpTable>(workload.jobs[0].work).programs) {
      operations += program.ops.size();
    }
    benchmark::DoNotOptimize(operations);
  }
  state.counters["operations"] = static_cast<double>(operations);
}
BENCHMARK(build)->Args({1024, 128})->Args({16384, 128})->Args({131072, 128})->Args({16384, 512});

void check(benchmark::State& state) {
  const Workload workload =
      exact_workload(llama_405b(state.range(0), state.range(1)), at_half_peak);
  for (auto _ : state) {
    validate(workload);
  }
}
BENCHMARK(check)->Args({16384, 128})->Args({131072, 128});

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
