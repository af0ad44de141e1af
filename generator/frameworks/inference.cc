#include <memory>
#include <string>

#include <fmt/format.h>

#include "generator/generator.h"
#include "generator/inference_model.h"
#include "generator/simai_row.h"

namespace lockstep {
namespace {

SimaiRow line_of(const InferenceModel& model, const InferenceModel::Item& item) {
  const SimaiPhase nothing{0, "NONE", 0};
  SimaiRow line{item.name, {item.ns, "NONE", 0}, nothing, nothing};
  switch (item.op) {
    case InferenceOp::kAttentionNorm:
    case InferenceOp::kMoeNorm:
    case InferenceOp::kSharedExperts:
      break;
    case InferenceOp::kAttention:
    case InferenceOp::kLinearAttention:
    case InferenceOp::kDenseMlp:
      if (model.tp > 1) {
        line.forward = {item.ns, "ALLREDUCE", model.activation};
      }
      break;
    case InferenceOp::kMoeRoute:
      line = {item.name, {item.ns, "ALLTOALL_EP", model.dispatch}, {}, {}};
      break;
    case InferenceOp::kMoeExpert:
      line = {item.name, {item.ns, "ALLTOALL_EP", model.combine}, {}, {}};
      break;
  }
  return line;
}

Count lines_of(const InferenceModel& model) {
  Count lines = 0;
  for (const InferenceModel::Block& block : model.blocks) {
    lines += Count(block.layers) * std::ssize(block.items);
  }
  return lines;
}

void write(const InferenceModel& model, BlockWriter& out) {
  const Count pipeline = model.pp > 1 ? 2 * model.micro_batch * model.seq * model.hidden : Count(0);
  out.text(
      fmt::format("{} model_parallel_NPU_group: {} ep: {} pp: {} all_gpus: {} mode: 1 vpp: 1 "
                  "ga: 1 checkpoints: 0 checkpoint_initiates: 0 pp_comm: {}\n{}\n",
                  kSimaiPolicy, model.tp.value, model.ep.value, model.pp.value,
                  model.world_size.value, pipeline.value, lines_of(model).value));
  for (const InferenceModel::Block& block : model.blocks) {
    std::string layer;
    for (const InferenceModel::Item& item : block.items) {
      layer += to_text(line_of(model, item));
    }
    for (std::int64_t i = 0; i < block.layers; ++i) {
      out.text(layer);
    }
  }
}

GeneratedWorkload generate(const GenerateRequest& request) {
  GeneratedWorkload workload;
  const auto model =
      std::make_shared<const InferenceModel>(inference_model(request, workload.warnings));
  workload.file_name = inference_base_name(*model) + ".txt";
  workload.write = [model](BlockWriter& out) { write(*model, out); };
  return workload;
}

}  // namespace

extern const Generator kInferenceGenerator;
const Generator kInferenceGenerator = {"inference",
                                       "a forward pass of DeepSeek or Qwen3, prefill or decode",
                                       "simai", inference_flag_table, generate};

}  // namespace lockstep
