#include "analysis/whatif/job_analysis.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep::whatif {
namespace {

std::vector<double> as_traced(const std::vector<float>& starts) {
  return {starts.begin(), starts.end()};
}

Shares shares_of(const Scene& scene, const Result& result, const std::vector<double>& by_worker) {
  Shares shares{contribution(scene, last_stage(scene.table)), no_contribution(scene)};
  if (result.blocking) {
    shares.workers = contribution(scene, slowest_workers(scene.table, by_worker));
  }
  return shares;
}

Shares shares_from_zero(const Scene& scene, const Result& result,
                        const std::vector<double>& by_worker) {
  const auto& starts = scene.model.step_start_s;
  if (std::all_of(starts.begin(), starts.end(), [](double start) { return start == 0; })) {
    return shares_of(scene, result, by_worker);
  }
  const Model model = make_model(scene.table, scene.graph, scene.simulator, scene.traced,
                                 std::vector<double>(starts.size(), 0.0));
  return shares_of({scene.table, scene.graph, scene.simulator, scene.traced, model}, result,
                   by_worker);
}

/// Ratios need times.
Scene checked(const Scene& scene, const std::string& file) {
  for (std::size_t s = 0; s < scene.table.steps.size(); ++s) {
    if (!(scene.model.ideal.optimizer[s] > 0) || !(scene.model.nodelay.optimizer[s] > 0)) {
      throw Error(fmt::format("step {} takes no time", scene.table.steps[s]))
          .at(file)
          .expected("operations that last");
    }
  }
  return scene;
}

bool reduces_beside_passes(const OpTable& table) {
  for (std::uint32_t n = 0; n < table.nodes.size(); ++n) {
    if (table.is_beside_pass(n)) {
      return true;
    }
  }
  return false;
}

/// What reductions in every microbatch meet, and would meet at other times where nobody is late:
/// transfers of tensor-parallel peers on the same links, or computations that they slow down.
const char* met_by_reductions(const OpTable& table) {
  if (!reduces_beside_passes(table)) {
    return nullptr;
  }
  if (table.tp > 1) {
    return "beside transfers of tensor-parallel peers, and share links with others than they would "
           "without the slow ones";
  }
  return table.undisturbed_s.empty()
             ? nullptr
             : "and slow computations down, others than they would without the slow ones";
}

}  // namespace

JobAnalysis::JobAnalysis(LoadedJob job, const JobMeta& meta, const std::string& file,
                         const AnalysisOptions& options, Warnings* warnings)
    : trace(std::move(job.trace)),
      table(std::move(job.table)),
      graph(make_dependency_graph(table, meta, file, warnings)),
      simulator(table, graph, file),
      traced(measure(table, graph)),
      model(make_model(table, graph, simulator, traced, as_traced(traced.step_start_s))),
      scene(checked({table, graph, simulator, traced, model}, file)),
      blocking(take_apart(scene)),
      result(make_result(scene, meta, blocking,
                         {.decompose_threshold = options.decompose_threshold,
                          .picked_steps = options.picked_steps})),
      workers(blocking_by_worker(scene)),
      approximate(table.peers() > 1
                      ? workers.ratio
                      : approximate_by_worker(blocking.by_dp_rank, blocking.by_stage)),
      shares(shares_from_zero(scene, result, approximate)),
      causes(find_causes(scene, blocking, options.approximate_workers ? approximate : workers.ratio,
                         workers.per_step, shares.stage)) {
  if (traced.transfers_taken_as_0 > 0 && warnings != nullptr) {
    warnings->add(
        fmt::format("{}: {} transfers that end 10 ms before their group began are taken as 0", file,
                    traced.transfers_taken_as_0));
  }
  const bool names_worker = std::ranges::any_of(
      causes.causes, [](const Cause& cause) { return cause.pattern == Pattern::kWorker; });
  if (const char* met = met_by_reductions(table);
      names_worker && warnings != nullptr && met != nullptr) {
    warnings->add(
        fmt::format("{}: what replacing slow workers brings was up to {} % off in random jobs: "
                    "gradients are reduced in every microbatch (ZeRO-2) {}",
                    file, table.tp > 1 ? "3.4" : "1.5", met));
  }
}

}  // namespace lockstep::whatif
