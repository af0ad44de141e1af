#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/plan/job_plan_files.h"
#include "app/plan/mixed_plan_report.h"
#include "base/atomic_file.h"
#include "base/file_record.h"
#include "base/json.h"
#include "generator/exact/rank_sizes.h"
#include "workloads/workload_json.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Servers in the order in which Megatron-LM's launcher would number them.
struct LaunchOrder {
  std::string rank_order;
  std::vector<std::int32_t> servers;
  std::size_t per_server = 0;
};

/// How Megatron-LM's ranks come to lie on the plan's GPUs, server by server; nothing: no order of
/// servers does it.
std::optional<LaunchOrder> launch_order(const MixedJob& job, const Topology& topology) {
  const PipelineKind& kind = job.kinds.front();
  const std::size_t pipelines = kind.first_rank.size(), stages = kind.gpu_type.size();
  const std::vector<NodeId> gpus = topology.gpus();
  const auto server_of = [&](std::int32_t rank) {
    return topology.nodes[gpus[static_cast<std::size_t>(rank)].index()].server;
  };
  const Job& base = job.base;
  // With pipelines one behind the other Megatron-LM has one copy in each, and no other stages for
  // experts than for the rest.
  const bool by_pipeline = job.copies == 1 && (experts_of(base.model) == 0 ||
                                               base.ep * expert_tp(base) == base.tp * base.cp);
  for (const bool stage_by_stage : {true, false}) {
    if (!stage_by_stage && !by_pipeline) {
      continue;
    }
    LaunchOrder order{stage_by_stage ? "tp-cp-ep-dp-pp" : "tp-cp-ep-pp-dp", {}, 0};
    std::vector<std::int32_t> ranks;
    for (std::size_t i = 0; i < pipelines * stages; ++i) {
      const std::size_t p = stage_by_stage ? i % pipelines : i / stages;
      const std::size_t s = stage_by_stage ? i / pipelines : i % stages;
      for (std::int64_t t = 0; t < job.width(); ++t) {
        ranks.push_back(kind.first_rank[p][s] + static_cast<std::int32_t>(t));
      }
    }
    bool good = true;
    for (std::size_t begin = 0; good && begin < ranks.size();) {
      std::size_t end = begin + 1;
      while (end < ranks.size() && server_of(ranks[end]) == server_of(ranks[begin])) {
        good = good && ranks[end] == ranks[end - 1] + 1;
        ++end;
      }
      good = good && (order.per_server == 0 || order.per_server == end - begin) &&
             std::ranges::count(order.servers, server_of(ranks[begin])) == 0;
      order.per_server = end - begin;
      order.servers.push_back(server_of(ranks[begin]));
      begin = end;
    }
    if (good) {
      return order;
    }
  }
  return std::nullopt;
}

/// Megatron Core's --pipeline-model-parallel-layout: E embedding, t a layer, L loss.
std::string layout_of_stages(const std::vector<std::int64_t>& layers) {
  std::vector<std::string> stages;
  stages.reserve(layers.size());
  for (const std::int64_t each : layers) {
    stages.push_back(each == 1 ? "t" : fmt::format("t*{}", each));
  }
  stages.front() = "E" + stages.front();
  stages.back() += "L";
  return fmt::format("{}", fmt::join(stages, "|"));
}

std::string refusal(const std::vector<std::string>& why) {
  std::string text = "#!/bin/bash\n";
  for (const std::string& line : why) {
    text += fmt::format("# {}\n", line);
  }
  return text + fmt::format("echo 'megatron.sh: {}' >&2\nexit 1\n", why.front());
}

std::string megatron_script(const MixedPlan& plan, const MixedProblem& problem,
                            const Topology& topology) {
  if (plan.job.kinds.size() > 1) {
    return refusal({"Megatron-LM has no flags for pipelines that are not alike.",
                    "The plan: " + plan_text(plan) + ".",
                    "workload.json has it rank by rank; job.sh simulates it."});
  }
  const std::optional<LaunchOrder> order =
      launch_order(with_model(problem.base, plan.job), topology);
  if (!order) {
    return refusal({"no order of servers puts Megatron-LM's ranks where the plan has them.",
                    "The plan: " + plan_text(plan) + "."});
  }
  const PipelineKind& kind = plan.job.kinds.front();
  Job job = with_model(problem.base, job_of(plan.job, kind));
  job.rank_order = order->rank_order;
  std::string text = "#!/bin/bash\n";
  text +=
      fmt::format("# Servers in this order of node ranks: {}.\n", fmt::join(order->servers, ", "));
  text += fmt::format("# The plan: {}.\n", plan_text(plan));
  Job but_layers = job;
  but_layers.stage_layers.clear();
  for (const std::string& line : beyond_megatron(but_layers)) {
    text += fmt::format("# {}\n", line);
  }
  const bool even = std::ranges::all_of(
      kind.layers, [&](std::int64_t layers) { return layers == kind.layers.front(); });
  std::vector<std::string> layout;
  if (!even) {
    layout.push_back(
        fmt::format("--pipeline-model-parallel-layout '{}'", layout_of_stages(kind.layers)));
  }
  return text + megatron_launch(job, static_cast<std::int64_t>(order->per_server),
                                std::ssize(order->servers), std::move(layout));
}

Json deepspeed_config(const MixedPlan& plan, const MixedProblem& problem) {
  const Job& base = plan.job.base;
  const std::vector<PipelineKind>& kinds = plan.job.kinds;
  std::vector<std::string> cannot;
  Json json = {{"train_batch_size", problem.base.global_batch},
               {"train_micro_batch_size_per_gpu", base.micro_batch},
               {"bf16", {{"enabled", base.precision == Precision::kBf16}}},
               {"fp16", {{"enabled", base.precision == Precision::kFp16}}},
               {"zero_optimization", {{"stage", static_cast<int>(base.sharding)}}}};
  if (base.tp > 1) {
    json["tensor_parallel"] = {{"autotp_size", base.tp}};
  }
  if (kinds.size() > 1) {
    cannot.push_back("DeepSpeed has no pipelines that are not alike. The plan: " + plan_text(plan));
  } else {
    json["gradient_accumulation_steps"] = kinds.front().microbatches;
    if (kinds.front().stages() > 1) {
      json["pipeline"] = {{"stages", kinds.front().stages()}};
      cannot.push_back(fmt::format(
          "DeepSpeed's configuration has no list of layers a stage: PipelineModule's parts are {}",
          fmt::join(kinds.front().layers, ", ")));
    }
  }
  if (base.hsdp_replicas > 1) {
    json["zero_optimization"]["zero_hpz_partition_size"] = plan.job.copies * base.cp;
  }
  Job longest = base;
  for (const PipelineKind& kind : kinds) {
    longest.pp = std::max(longest.pp, kind.stages());
    longest.vpp = std::max(longest.vpp, kind.chunks());
  }
  std::ranges::move(beyond_deepspeed(longest), std::back_inserter(cannot));
  if (!cannot.empty()) {
    json["_comment"] = cannot;
  }
  return json;
}

}  // namespace

void write_mixed_plan(const JobPlanInput& input, const MixedProblem& problem,
                      const MixedPlanReport& report, const std::string& json) {
  const std::string& folder = input.options.output;
  make_folder(folder);
  const MixedPlan& best = report.result.plans.front();
  const auto write = [&](const char* name, const std::string& text) {
    write_file((fs::path(folder) / name).string(), text);
  };
  AtomicFile workload((fs::path(folder) / "workload.json").string());
  const std::vector<OperatorTime> times = problem.operator_times();
  write_workload_json(mixed_workload(with_model(problem.base, best.job), times),
                      [&](std::string_view text) { workload.write(text); });
  workload.commit();
  write("job.sh",
        fmt::format("#!/bin/sh\ncd \"$(dirname \"$0\")\" || exit 1\n"
                    "exec ${{LOCKSTEP:-lockstep}} simulate --workload workload.json "
                    "--topology {}{} \"$@\"\n",
                    path_exists(input.options.topology) ? absolute_path(input.options.topology)
                                                        : input.options.topology,
                    report.sprayed ? "" : " --no-spray"));
  write("plan.json", json);
  write("megatron.sh", megatron_script(best, problem, input.topology));
  write("deepspeed.json", to_text(deepspeed_config(best, problem)));
}

}  // namespace lockstep
