#include "app/plan/aceso_report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {
namespace {

using namespace aceso;

constexpr double kBytesPerMb = 1 << 20;

/// The values a stage's ops have of one kind, each once: "1~2".
template <class F>
std::string values(const Stage& stage, F&& value) {
  std::vector<int> found;
  for (const OpPlace& place : stage.places) {
    found.push_back(value(place));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return fmt::format("{}", fmt::join(found, "~"));
}

std::int64_t flags(const Stage& stage) {
  return std::count(stage.recompute.begin(), stage.recompute.end(), 1);
}

}  // namespace

double samples_per_s(const Plan& plan, const PlanPrice& price) {
  return static_cast<double>(plan.samples()) / price.time_ms * 1000;
}

std::string aceso_plan_table(const Plan& plan, const PlanPrice& price, const Cluster& cluster) {
  std::string text = fmt::format(
      "{:.2f} ms an iteration, {:.2f} samples/s; {} microbatches of {}; {:.2f} MB of {:.0f}\n",
      price.time_ms, samples_per_s(plan, price), plan.microbatches(), plan.microbatch,
      price.memory_mb, cluster.memory_limit_mb);
  text += "stage  ops  GPUs   tp   dp  algo  recompute    time ms   memory MB  normal+reserved\n";
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const StagePrice& cost = price.stages[s];
    text += fmt::format(
        "{:5}{:5}{:6}{:>5}{:>5}{:>6}{:11}{:11.2f}{:12.2f}  {:.2f}+{:.2f}{}\n", s, stage.ops(),
        stage.gpus, values(stage, [](const OpPlace& place) { return place.tp; }),
        values(stage, [](const OpPlace& place) { return place.dp; }),
        values(stage, [](const OpPlace& place) { return place.algorithm; }), flags(stage),
        cost.iteration_ms, cost.memory_mb, cost.memory_mb - cost.reserved_mb, cost.reserved_mb,
        cost.memory_mb > cluster.memory_limit_mb ? "  over the limit" : "");
  }
  return text;
}

Json aceso_plan_json(const Plan& plan, const PlanPrice& price, const Cluster& cluster) {
  Json stages = Json::array();
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const StagePrice& cost = price.stages[s];
    stages.push_back({{"ops", stage.ops()},
                      {"gpus", stage.gpus},
                      {"recomputed_ops", flags(stage)},
                      {"time_s", cost.iteration_ms / 1000},
                      {"microbatch_time_s", cost.time_ms / 1000},
                      {"forward_s", cost.forward_us / 1e6},
                      {"backward_s", cost.backward_us / 1e6},
                      {"recompute_s", cost.recompute_us / 1e6},
                      {"receive_s", cost.in_us / 1e6},
                      {"send_s", cost.out_us / 1e6},
                      {"once_a_step_s", cost.once_us / 1e6},
                      {"memory_bytes", cost.memory_mb * kBytesPerMb},
                      {"reserved_bytes", cost.reserved_mb * kBytesPerMb},
                      {"weights_bytes", cost.weights_mb * kBytesPerMb},
                      {"ideal_s", cost.ideal_ms / 1000},
                      {"efficiency_loss_s", cost.efficiency_loss_ms / 1000},
                      {"efficient_time_s", cost.efficient_time_ms / 1000}});
  }
  return {{"time_s", price.time_ms / 1000},
          {"samples_per_s", samples_per_s(plan, price)},
          {"memory_bytes", price.memory_mb * kBytesPerMb},
          {"memory_limit_bytes", cluster.memory_limit_mb * kBytesPerMb},
          {"fits", price.memory_mb <= cluster.memory_limit_mb},
          {"global_batch", plan.global_batch},
          {"micro_batch", plan.microbatch},
          {"microbatches", plan.microbatches()},
          {"total_gpu_time_s", price.total_gpu_time / 1000},
          {"stages", std::move(stages)}};
}

}  // namespace lockstep
