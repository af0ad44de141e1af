#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/compute_profile.h"
#include "generator/generator.h"
#include "generator/megatron_model.h"
#include "generator/python_text.h"
#include "generator/rules.h"
#include "generator/scripts.h"
#include "generator/simai_layers.h"
#include "generator/simai_row.h"
#include "generator/training_flags.h"

namespace lockstep {
namespace {

/// A whole workload as blocks: begin, first microbatch, the others, end.
struct Plan {
  SimaiBlock begin, first_embedding, embedding, after, end;
  std::vector<SimaiBlock> shapes;
  std::vector<LayerRun> runs;
  Count microbatches;
  std::string header;
};

void add(SimaiBlock& block, const SimaiRow& line) {
  append(block.text, line);
  ++block.lines;
}

SimaiBlock begin_lines(const TrainingArgs& args, const ParameterSums& sums,
                       const ComputeProfile* profile) {
  SimaiBlock block;
  const Count all = sums.simai_all;
  if (profile != nullptr) {
    const Count dense = all - sums.simai_moe;
    const Count time = Count(profile->grad_time(ComputeProfile::Pass::kForward)) +
                       profile->grad_time(ComputeProfile::Pass::kBackward);
    add(block, {"grad_gather", {}, {}, {1, "ALLGATHER", 2 * dense}});
    add(block, {"grad_param_comm", {}, {}, {1, "REDUCESCATTER", 4 * dense}});
    add(block, {"grad_param_compute", {}, {time}, {}});
  } else {
    add(block, {"grad_norm", {1, "ALLGATHER", 2 * all}, {}, {1, "REDUCESCATTER", 4 * all}});
  }
  if (!args.sequence_parallel) {
    add(block, {"layernorm", {}, {1, "ALLREDUCE", 2 * all}, {}});
  }
  if (profile != nullptr) {
    const bool cut = args.tp > 1;
    add(block, {"embedding_grads",
                {},
                {1, cut ? "ALLREDUCE" : "NONE", cut ? activation_bytes(args) : 0},
                {}});
  }
  if (args.ep != args.dp) {
    add(block, {"moe_grad_norm1", {}, {}, {1, "ALLGATHER_DP_EP", 2 * sums.simai_moe}});
    add(block, {"moe_grad_norm2", {}, {}, {1, "REDUCESCATTER_DP_EP", 4 * sums.simai_moe}});
  }
  return block;
}

SimaiBlock end_lines(const TrainingArgs& args) {
  SimaiBlock block;
  const SimaiPhase nothing{0, "NONE", 0};
  for (int i = 1; i <= 3; ++i) {
    const std::string name = fmt::format("cross_entropy{}", i);
    add(block, {name, {0, "ALLREDUCE", 4 * args.seq * args.micro_batch}, nothing, nothing});
  }
  for (int i = 1; i <= 4; ++i) {
    add(block, {fmt::format("optimizer{}", i), {0, "ALLREDUCE", 4}, nothing, nothing});
  }
  return block;
}

/// Bytes sent to the next stage; with sequence parallelism AICB divides in floating point.
std::string pipeline_bytes(const TrainingArgs& args) {
  const Count bytes = activation_bytes(args);
  if (args.pp == 1) {
    return "0";
  }
  return args.sequence_parallel ? python_repr(python_true_divide(bytes.value, args.tp.value))
                                : fmt::format("{}", bytes.value);
}

std::string header(const TrainingArgs& args, std::int64_t lines) {
  return fmt::format(
      "{} model_parallel_NPU_group: {} ep: {} pp: {} vpp: {} ga: {} all_gpus: {} checkpoints: 0 "
      "checkpoint_initiates: 0 pp_comm: {}\n{}\n",
      kSimaiPolicy, args.tp.value, args.ep.value, args.pp.value, args.layers.value,
      args.microbatches.value, args.world_size.value, pipeline_bytes(args), lines);
}

Plan make_plan(const TrainingArgs& args, const ComputeProfile* profile) {
  const MegatronModel model = megatron_model(args);
  const SimaiLayers layers(model, args, profile);
  Plan plan;
  plan.begin = begin_lines(args, parameter_sums(model, args), profile);
  plan.first_embedding = layers.embedding(true);
  plan.embedding = layers.embedding(false);
  plan.after = layers.after_layers();
  plan.end = end_lines(args);
  plan.runs = model.runs;
  plan.microbatches = args.microbatches;
  Count microbatch = plan.embedding.lines + plan.after.lines;
  for (const LayerShape& shape : model.shapes) {
    plan.shapes.push_back(layers.layer(shape));
  }
  for (const LayerRun& run : plan.runs) {
    microbatch += run.layers * plan.shapes[run.shape].lines;
  }
  require_row_limit(static_cast<long double>(microbatch.value) *
                    static_cast<long double>(args.microbatches.value));
  const Count lines = plan.begin.lines + microbatch * args.microbatches + plan.end.lines;
  plan.header = header(args, lines.value);
  return plan;
}

void write_plan(const Plan& plan, BlockWriter& out) {
  out.text(plan.header);
  out.text(plan.begin.text);
  for (Count i = 0; i < plan.microbatches; i += 1) {
    out.text(i == 0 ? plan.first_embedding.text : plan.embedding.text);
    for (const LayerRun& run : plan.runs) {
      out.repeat(plan.shapes[run.shape].text, run.layers.value);
    }
    out.text(plan.after.text);
  }
  out.text(plan.end.text);
}

std::string_view python_bool(bool value) { return value ? "True" : "False"; }

std::string file_name(const TrainingArgs& args) {
  return fmt::format(
      "{}-{}-world_size{}-tp{}-pp{}-ep{}-gbs{}-mbs{}-seq{}-MOE-{}-GEMM-{}-flash_attn-{}.txt",
      args.gpu_type, args.model_name, args.world_size.value, args.tp.value, args.pp.value,
      args.ep.value, args.global_batch.value, args.micro_batch.value, args.seq.value,
      python_bool(args.moe), python_bool(args.grouped_gemm), python_bool(args.flash));
}

GeneratedWorkload generate(const GenerateRequest& request) {
  GeneratedWorkload workload;
  const ArgValues flags = training_flags(request, PresetFamily::kSimai, &workload.warnings);
  const TrainingArgs args = training_args(flags);
  std::optional<ComputeProfile> profile;
  if (args.aiob) {
    if (args.comp_filepath.empty()) {
      throw Error("no compute-time file is given")
          .field("--aiob_enable")
          .expected("--comp_filepath FILE, as AICB's AIOB measures on a GPU");
    }
    profile = ComputeProfile::read_aiob(path_in(request.folder, args.comp_filepath), args.recompute,
                                        workload.warnings);
  }
  workload.file_name = file_name(args);
  warn_of_losses(args, workload.warnings);
  const auto plan =
      std::make_shared<const Plan>(make_plan(args, profile.has_value() ? &*profile : nullptr));
  workload.write = [plan](BlockWriter& out) { write_plan(*plan, out); };
  return workload;
}

}  // namespace

extern const Generator kSimaiTrainingGenerator;
const Generator kSimaiTrainingGenerator = {
    "simai-training", "one training step of Megatron or DeepSeek as SimAI's layer table", "simai",
    training_flag_table, generate};

}  // namespace lockstep
