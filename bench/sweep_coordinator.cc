// What a sweep's coordinator can do, whatever the points: rows a second from 1,000 ranks, and rows
// a second into the tables.
#include <cstdint>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "app/sweep/coordinator.h"
#include "app/sweep/sweep_table.h"
#include "tests/support/fake_crew.h"

namespace {

using namespace lockstep;

Grid grid_of(std::int64_t points) {
  return parse_grid(
      "command: simulate\nflags: {model: llama3-8b, engine: flow}\naxes:\n"
      "  - {tp: [1, 2, 4, 8]}\n  - {nic: [100Gbps, 200Gbps, 400Gbps, 800Gbps]}\n"
      "  - {seed: {seeds: " +
          std::to_string(points / 16) + "}}\n",
      "grid.yaml");
}

/// Letters out, rows in, journal and prediction, with ranks that answer at once.
void coordinate(benchmark::State& state) {
  const Grid grid = grid_of(32'000);
  const std::string path = std::filesystem::temp_directory_path() / "lockstep-bench-journal.jsonl";
  for (auto _ : state) {
    state.PauseTiming();
    std::filesystem::remove(path);
    SweepJournal journal(path, {}, grid.size());
    SweepRunner runner(0);
    lockstep::testing::FakeCrew crew(static_cast<int>(state.range(0)));
    SweepCoordinator coordinator(grid, runner, &crew, journal, [&](std::int64_t point) {
      return sweep_task(grid, point, "out", false);
    });
    std::vector<std::int64_t> points(static_cast<std::size_t>(grid.size()));
    std::iota(points.begin(), points.end(), 0);
    state.ResumeTiming();
    benchmark::DoNotOptimize(coordinator.run(points, [](std::int64_t) { return true; }));
  }
  std::filesystem::remove(path);
  state.SetItemsProcessed(state.iterations() * grid.size());
}
BENCHMARK(coordinate)->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);

std::map<std::int64_t, SweepRow> rows_of(const Grid& grid) {
  std::map<std::int64_t, SweepRow> rows;
  for (std::int64_t point = 0; point < grid.size(); ++point) {
    SweepRow& row = rows[point];
    row.point = point;
    for (int output = 0; output < 12; ++output) {
      row.outputs.emplace_back("output_" + std::to_string(output) + "_s",
                               1e-3 * static_cast<double>(point + output));
    }
  }
  return rows;
}

void csv(benchmark::State& state) {
  const Grid grid = grid_of(state.range(0));
  const auto rows = rows_of(grid);
  for (auto _ : state) {
    benchmark::DoNotOptimize(to_csv(sweep_table(grid, rows)));
  }
  state.SetItemsProcessed(state.iterations() * grid.size());
}
BENCHMARK(csv)->Arg(16'000)->Arg(160'000)->Unit(benchmark::kMillisecond);

void parquet(benchmark::State& state) {
  const Grid grid = grid_of(state.range(0));
  const auto rows = rows_of(grid);
  for (auto _ : state) {
    benchmark::DoNotOptimize(to_parquet(sweep_table(grid, rows)));
  }
  state.SetItemsProcessed(state.iterations() * grid.size());
}
BENCHMARK(parquet)->Arg(160'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
