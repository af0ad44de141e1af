#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/csv_program.h"
#include "generator/csv_row.h"
#include "generator/generator.h"
#include "generator/megatron_model.h"
#include "generator/megatron_rows.h"
#include "generator/rules.h"
#include "generator/scripts.h"

namespace lockstep {
namespace {

/// The rows of every part of a step, ready to be repeated.
struct Plan {
  TrainingArgs args;
  std::string init, inputs, losses, step;
  std::string embedding_forward, embedding_backward;
  std::vector<std::string> forward, backward;  ///< by layer shape
  std::vector<LayerRun> runs;
};

void broadcast(std::string& text, const TrainingArgs& args, Count bytes, std::string_view stage) {
  CsvRow row{"broadcast", "tp_group", args.tp, {}, stage};
  const std::string size = fmt::format("{}", bytes.value);
  row.size = size;
  row.src = Count(0);
  append(text, row);
}

std::string init_rows(const TrainingArgs& args) {
  std::string text;
  const std::string_view stage = "init.model_setup";
  append_comm(text, "all_reduce", "dp_group", args.dp, 8, stage);
  for (int i = 0; i < 3; ++i) {
    append_comm(text, "all_reduce", "dp_group", args.dp, 8, stage);
    if (args.pp > 1) {
      append_comm(text, "all_reduce", "pp_group", args.pp, 8, stage);
    }
  }
  append_comm(text, "all_gather", "dp_group", args.dp, 32, stage);
  broadcast(text, args, 24, stage);
  if (args.pp > 1 && args.pp_rank == args.pp.value - 1) {
    append_comm(text, "all_reduce", "tp_group", args.tp,
                2 * 4 * (args.padded_vocab / args.tp) * args.hidden, stage);
    append_comm(text, "all_reduce", "tp_group", args.tp, 2 * args.seq * args.hidden, stage);
  }
  append_comm(text, "all_gather", "dp_group", args.dp, 64, stage);
  return text;
}

/// A microbatch's tokens go from the first rank of the tensor parallel group to the others.
std::string input_rows(const TrainingArgs& args) {
  std::string text;
  broadcast(text, args, 40, "forward_step");
  broadcast(text, args, 8 * (args.world_size + args.seq * args.micro_batch), "forward_step");
  return text;
}

std::string loss_rows(const TrainingArgs& args) {
  std::string text;
  for (int i = 0; i < 3; ++i) {
    append_comm(text, "all_reduce", "tp_group", args.tp, 4 * args.seq * args.micro_batch,
                "forward_step._VocabParallelCrossEntropy");
  }
  append_comm(text, "all_reduce", "dp_group", args.dp, 4,
              "forward_step.average_losses_across_data_parallel_group");
  return text;
}

std::string step_rows(const TrainingArgs& args, Count parameters) {
  std::string text;
  if (args.distributed_optimizer) {
    append_comm(text, "reduce_scatter", "dp_group", args.dp, 4 * parameters / args.pp, "step");
    append_comm(text, "all_gather", "dp_group", args.dp, 2 * parameters / args.pp, "step");
  } else {
    append_comm(text, "all_reduce", "dp_group", args.dp, 4 * parameters / args.pp,
                "step.finish_grad_sync");
  }
  append_comm(text, "all_reduce", "tp_group", args.tp, 0, "step._allreduce_layernorm_grads");
  append_comm(text, "all_reduce", "tp_group", args.tp, 4, "step.check_for_nan");
  return text;
}

void model_forward(const Plan& plan, BlockWriter& out) {
  out.text(plan.embedding_forward);
  for (const LayerRun& run : plan.runs) {
    out.repeat(plan.forward[run.shape], run.layers.value);
  }
}

void model_backward(const Plan& plan, BlockWriter& out) {
  for (auto run = plan.runs.rbegin(); run != plan.runs.rend(); ++run) {
    out.repeat(plan.backward[run->shape], run->layers.value);
  }
  out.text(plan.embedding_backward);
}

std::string neighbour_row(const TrainingArgs& args, std::string_view type, std::string_view what,
                          std::string_view stage) {
  const std::string size = fmt::format("{}", activation_bytes(args).value);
  CsvRow row{type, "pp_group", Count(1), size, stage};
  row.additional = what;
  return rows([&](std::string& text) { append(text, row); });
}

/// The stage whose rows are written. With --workload_only AICB always takes the first; without it
/// that of the process it runs in, which --pp_rank names here.
Count stage_of(const TrainingArgs& args) {
  if (args.workload_only || args.pp_rank < 0 || !runs_pipeline(args)) {
    return 0;
  }
  if (args.pp_rank >= args.pp.value) {
    throw Error(fmt::format("there is no stage {} of {}", args.pp_rank, args.pp.value))
        .field("--pp_rank")
        .expected(fmt::format("a stage from 0 to {}", args.pp.value - 1));
  }
  return args.pp_rank;
}

/// One forward, one backward (1F1B) as a stage runs it.
void pipeline_rows(const Plan& plan, BlockWriter& out) {
  const TrainingArgs& args = plan.args;
  const Count stage = stage_of(args);
  const bool first = stage == 0, last = stage == args.pp - 1;
  const auto row = [&](bool present, std::string_view type, std::string_view what,
                       std::string_view step) {
    return present ? neighbour_row(args, type, what, step) : std::string();
  };
  const std::string input = row(!first, "irecv", "recv_prev", "forward_step");
  const std::string send = row(!last, "isend", "send_next", "forward_step");
  const std::string gradient = row(!last, "irecv", "recv_next", "forward_step");
  const std::string last_gradient = row(!last, "irecv", "recv_next", "backward_step");
  const std::string send_gradient = row(!first, "isend", "send_prev", "backward_step");
  const std::string next_input = row(!first, "irecv", "recv_prev", "backward_step");
  const Count warm_up = std::min(args.pp - stage - 1, args.microbatches);
  for (Count i = 0; i < warm_up; i += 1) {
    out.text(input);
    out.text(plan.inputs);
    model_forward(plan, out);
    out.text(send);
  }
  if (warm_up < args.microbatches) {
    out.text(input);
  }
  for (Count i = warm_up; i < args.microbatches; i += 1) {
    out.text(plan.inputs);
    model_forward(plan, out);
    out.text(gradient);
    out.text(send);
    model_backward(plan, out);
    out.text(send_gradient);
    if (i + 1 < args.microbatches) {
      out.text(next_input);
    }
  }
  for (Count i = 0; i < warm_up; i += 1) {
    out.text(last_gradient);
    model_backward(plan, out);
    out.text(send_gradient);
  }
}

Plan make_plan(const TrainingArgs& args, const ComputeProfile* times) {
  const MegatronModel model = megatron_model(args);
  const MegatronRows layer_rows(args, times);
  Plan plan;
  plan.args = args;
  plan.init = init_rows(args);
  plan.inputs = input_rows(args);
  plan.losses = loss_rows(args);
  plan.step = step_rows(args, parameter_sums(model, args).csv_all);
  plan.embedding_forward = layer_rows.embedding(true);
  plan.embedding_backward = layer_rows.embedding(false);
  plan.runs = model.runs;
  const auto lines = [](const std::string& text) {
    return static_cast<long double>(std::count(text.begin(), text.end(), '\n'));
  };
  for (const LayerShape& shape : model.shapes) {
    plan.forward.push_back(layer_rows.layer_forward(shape));
    plan.backward.push_back(layer_rows.layer_backward(shape));
  }
  long double microbatch = 10;
  for (const LayerRun& run : plan.runs) {
    microbatch += static_cast<long double>(run.layers.value) *
                  (lines(plan.forward[run.shape]) + lines(plan.backward[run.shape]));
  }
  require_row_limit((microbatch * static_cast<long double>(args.microbatches.value) + 9) *
                    static_cast<long double>(args.epochs.value));
  return plan;
}

CsvProgram program_of(const Plan& plan) {
  CsvProgram program;
  program.init = [&](BlockWriter& out) { out.text(plan.init); };
  program.forward = [&](BlockWriter& out) {
    if (plan.args.tp > 1) {
      out.text(plan.inputs);
    }
    model_forward(plan, out);
    out.text(plan.losses);
  };
  program.backward = [&](BlockWriter& out) { model_backward(plan, out); };
  program.step = [&](BlockWriter& out) { out.text(plan.step); };
  program.pipeline = [&](BlockWriter& out) { pipeline_rows(plan, out); };
  return program;
}

GeneratedWorkload generate(const GenerateRequest& request) {
  GeneratedWorkload workload;
  const ArgValues flags = training_flags(request, PresetFamily::kMegatron, &workload.warnings);
  const TrainingArgs args = training_args(flags);
  if (args.frame == "DeepSpeed") {
    throw Error("this generator writes Megatron's and DeepSeek's workloads")
        .field("--frame")
        .hint("--generator deepspeed12 or deepspeed3 writes DeepSpeed's");
  }
  std::optional<ComputeProfile> times;
  if (flags.on("fill_times")) {
    if (args.comp_filepath.empty()) {
      throw Error("no compute-time file is given")
          .field("--fill_times")
          .expected("--comp_filepath FILE");
    }
    times = ComputeProfile::read_aiob(path_in(request.folder, args.comp_filepath), args.recompute,
                                      workload.warnings);
  }
  stage_of(args);
  workload.file_name = training_csv_name("megatron", args);
  warn_of_losses(args, workload.warnings);
  if (runs_pipeline(args) && !args.workload_only && args.pp_rank < 0) {
    workload.warnings.add(
        "pipeline_model_parallel without workload_only: AICB itself writes the stage of the "
        "process "
        "that it runs in, and fails where there is none; this is the first stage, pp_rank names "
        "another");
  }
  const auto plan =
      std::make_shared<const Plan>(make_plan(args, times.has_value() ? &*times : nullptr));
  workload.write = [plan](BlockWriter& out) { write_csv(plan->args, program_of(*plan), out); };
  return workload;
}

}  // namespace

extern const Generator kMegatronGenerator;
const Generator kMegatronGenerator = {"megatron",
                                      "operations of a rank of Megatron or DeepSeek training",
                                      "csv", training_flag_table, generate};

}  // namespace lockstep
