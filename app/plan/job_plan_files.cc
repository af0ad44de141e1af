#include "app/plan/job_plan_files.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "generator/exact/rank_sizes.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string comments(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += fmt::format("# {}\n", line);
  }
  return text;
}

std::string megatron_script(const JobPlan& plan, const JobProblem& problem) {
  const Job& job = plan.job;
  std::int64_t per_server = std::min(problem.limits.gpus_per_server, job.gpus);
  if (job.gpus % per_server != 0) {  // torchrun starts equally many ranks on each
    per_server = std::gcd(per_server, job.gpus);
  }
  return "#!/bin/bash\n" + comments(beyond_megatron(job)) +
         megatron_launch(job, per_server, job.gpus / per_server);
}

Json deepspeed_config(const Job& job) {
  Json json = {{"train_batch_size", job.global_batch},
               {"train_micro_batch_size_per_gpu", job.micro_batch},
               {"gradient_accumulation_steps", job.microbatches()},
               {"bf16", {{"enabled", job.precision == Precision::kBf16}}},
               {"fp16", {{"enabled", job.precision == Precision::kFp16}}},
               {"zero_optimization",
                {{"stage", static_cast<int>(job.sharding)},
                 {"overlap_comm", job.overlap_gradients},
                 {"contiguous_gradients", true}}}};
  if (job.sharding == Sharding::kZero3 && job.hsdp_replicas > 1) {
    json["zero_optimization"]["zero_hpz_partition_size"] = job.dp() * job.cp / job.hsdp_replicas;
  }
  if (job.tp > 1) {
    json["tensor_parallel"] = {{"autotp_size", job.tp}};
  }
  if (job.pp > 1) {
    json["pipeline"] = {{"stages", job.pp}, {"partition", "uniform"}};
  }
  if (job.recompute == Recompute::kFull) {
    json["activation_checkpointing"] = {{"partition_activations", false}};
  }
  return json;
}

}  // namespace

std::vector<std::string> megatron_job_flags(const Job& job) {
  std::vector<std::string> flags;
  const auto add = [&](bool given, std::string_view flag, std::int64_t value) {
    if (given) {
      flags.push_back(fmt::format("--{} {}", flag, value));
    }
  };
  const auto set = [&](bool on, std::string_view flag) {
    if (on) {
      flags.push_back(fmt::format("--{}", flag));
    }
  };
  add(true, "tensor-model-parallel-size", job.tp);
  add(true, "pipeline-model-parallel-size", job.pp);
  add(job.vpp > 1, "num-virtual-stages-per-pipeline-rank", job.vpp);
  add(job.cp > 1, "context-parallel-size", job.cp);
  add(job.ep > 1, "expert-model-parallel-size", job.ep);
  add(job.expert_tp > 0, "expert-tensor-parallel-size", job.expert_tp);
  add(job.first_stage_layers > 0, "decoder-first-pipeline-num-layers", job.first_stage_layers);
  add(job.last_stage_layers > 0, "decoder-last-pipeline-num-layers", job.last_stage_layers);
  add(true, "micro-batch-size", job.micro_batch);
  add(true, "global-batch-size", job.global_batch);
  set(job.sequence_parallel, "sequence-parallel");
  set(job.schedule == "1f1b-overlap", "overlap-moe-expert-parallel-comm");
  set(job.rank_order == "tp-cp-ep-pp-dp", "use-tp-pp-dp-mapping");
  if (job.cp > 1) {
    flags.push_back(fmt::format("--cp-comm-type {}", job.context_comm == ContextComm::kRing ? "p2p"
                                                     : job.context_comm == ContextComm::kAllGather
                                                         ? "all_gather"
                                                         : "a2a"));
  }
  if (job.recompute == Recompute::kFull) {
    flags.emplace_back("--recompute-granularity full --recompute-method uniform");
    flags.emplace_back("--recompute-num-layers 1");
  } else if (job.recompute == Recompute::kSelective) {
    flags.emplace_back("--recompute-granularity selective");
  }
  if (job.sharding == Sharding::kZero1) {
    set(true, "use-distributed-optimizer");
  } else if (job.sharding != Sharding::kNone) {
    flags.push_back(fmt::format(
        "--use-distributed-optimizer --use-megatron-fsdp --data-parallel-sharding-strategy {}",
        job.sharding == Sharding::kZero2 ? "optim_grads" : "optim_grads_params"));
  }
  set(job.gradient_bytes == 2, "grad-reduce-in-bf16");
  set(job.gradient_bytes == 4, "accumulate-allreduce-grads-in-fp32");
  set(job.overlap_gradients, "overlap-grad-reduce");
  set(job.overlap_parameters && job.sharding != Sharding::kNone, "overlap-param-gather");
  set(job.precision == Precision::kBf16 || job.precision == Precision::kFp8, "bf16");
  set(job.precision == Precision::kFp16, "fp16");
  if (job.precision == Precision::kFp8) {
    flags.emplace_back("--fp8-format hybrid");
    flags.push_back(
        fmt::format("--fp8-recipe {}", job.fp8_recipe == Fp8Recipe::kTensorwise  ? "tensorwise"
                                       : job.fp8_recipe == Fp8Recipe::kBlockwise ? "blockwise"
                                       : job.fp8_recipe == Fp8Recipe::kMxfp8     ? "mxfp8"
                                                                                 : "delayed"));
  }
  if (!job.dropout) {
    flags.emplace_back("--attention-dropout 0.0 --hidden-dropout 0.0");
  }
  flags.push_back(fmt::format("--attention-backend {}", job.flash_attention ? "flash" : "unfused"));
  flags.push_back(fmt::format("--make-vocab-size-divisible-by {}", job.vocab_multiple));
  add(job.gradient_bucket > 0, "ddp-bucket-size", job.gradient_bucket);
  return flags;
}

std::string megatron_launch(const Job& job, std::int64_t per_server, std::int64_t servers,
                            std::vector<std::string> more_flags) {
  std::string text;
  std::vector<std::string> flags;
  if (auto model = megatron_model_flags(job.model, job.seq)) {
    flags = std::move(*model);
  } else {
    text +=
        fmt::format("# {} has no flags of Megatron-LM: add those of the model.\n", job.model.name);
    flags = {fmt::format("--seq-length {}", job.seq)};
  }
  std::ranges::move(more_flags, std::back_inserter(flags));
  std::ranges::move(megatron_job_flags(job), std::back_inserter(flags));
  text += fmt::format(
      "torchrun --nproc-per-node {} --nnodes {} \\\n"
      "  --master-addr ${{MASTER_ADDR:-localhost}} --node-rank ${{NODE_RANK:-0}} \\\n"
      "  pretrain_gpt.py",
      per_server, servers);
  for (const std::string& flag : flags) {
    text += " \\\n  " + flag;
  }
  return text + "\n";
}

std::vector<std::string> beyond_megatron(const Job& job) {
  std::vector<std::string> lines;
  if (job.rank_order != "tp-cp-ep-dp-pp" && job.rank_order != "tp-cp-ep-pp-dp") {
    lines.push_back(
        fmt::format("Megatron-LM has no flag for ranks in the order {}.", job.rank_order));
  }
  if (job.schedule != "1f1b" && job.schedule != "1f1b-overlap") {
    lines.push_back(fmt::format("Megatron-LM has no schedule {}.", job.schedule));
  }
  if (job.hsdp_replicas > 1) {
    lines.push_back(fmt::format("The plan has {} copies of the sharded model (hybrid sharding).",
                                job.hsdp_replicas));
  }
  if (!job.stage_layers.empty()) {
    lines.push_back(
        fmt::format("The plan's stages have {} layers: --pipeline-model-parallel-layout says so.",
                    fmt::join(job.stage_layers, ", ")));
  }
  const std::int64_t stages = job.pp * job.vpp;
  std::int64_t layers = 0;
  for (const LayerBlock& block : job.model.blocks) {
    layers += block.layers;
  }
  if (job.stage_layers.empty() && job.first_stage_layers + job.last_stage_layers == 0 &&
      layers % stages != 0) {
    lines.push_back(
        fmt::format("{} layers do not divide into {} stages: Megatron-LM needs "
                    "--pipeline-model-parallel-layout.",
                    layers, stages));
  }
  return lines;
}

std::vector<std::string> beyond_deepspeed(const Job& job) {
  std::vector<std::string> lines;
  const auto say = [&](bool given, std::string_view what) {
    if (given) {
      lines.push_back(fmt::format("DeepSpeed's configuration has no {}", what));
    }
  };
  say(job.vpp > 1, "interleaved stages");
  say(job.cp > 1, "context parallelism (Ulysses is set in code)");
  say(job.ep > 1, "expert parallelism (ep_size is set in code)");
  say(job.sequence_parallel, "sequence parallelism of tensor-parallel ranks");
  say(job.pp > 1 && job.sharding > Sharding::kZero1, "pipeline with ZeRO-2 or 3");
  return lines;
}

void write_job_plan(const std::string& folder, const JobPlanReport& report,
                    const JobProblem& problem, const std::string& json) {
  make_folder(folder);
  JobPlan best = report.result.plans.front();
  best.job = with_model(problem.base, std::move(best.job));
  const auto write = [&](const char* name, const std::string& text) {
    write_file((fs::path(folder) / name).string(), text);
  };
  write("megatron.sh", megatron_script(best, problem));
  Json deepspeed = deepspeed_config(best.job);
  if (const auto lines = beyond_deepspeed(best.job); !lines.empty()) {
    deepspeed["_comment"] = lines;
  }
  write("deepspeed.json", to_text(deepspeed));
  write("job.sh", fmt::format("#!/bin/sh\nexec ${{LOCKSTEP:-lockstep}} simulate {} \"$@\"\n",
                              fmt::join(report.words, " ")));
  write("plan.json", json);
}

}  // namespace lockstep
