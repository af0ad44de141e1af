#include "generator/megatron_model.h"

#include <string>

#include "generator/layers/aicb_layers.h"
#include "generator/rules.h"

namespace lockstep {
namespace {

constexpr std::string_view kTpFlag = "tensor_model_parallel_size";

/// A linear of the layer list with the parameters of one rank.
Linear linear_of(const Module& module, Count tp) {
  const Count in = module.in, out = module.out;
  const bool row = module.kind == ModuleKind::kRowLinear;
  if (module.kind == ModuleKind::kPlainLinear) {
    return {module.name, LinearKind::kPlain, in, out, in * out + (module.bias ? out : 0)};
  }
  require_divides(row ? module.in_text : module.out_text, row ? in : out, kTpFlag, tp);
  if (row) {
    return {module.name, LinearKind::kRow, in, out, out * (in / tp) + (module.bias ? out : 0)};
  }
  const Count share = out / tp;
  return {module.name, LinearKind::kColumn, in, out, in * share + (module.bias ? share : 0)};
}

Count routed_parameters(const Module& moe, const TrainingArgs& args) {
  const Count width = moe.expert_ffn * (Count(moe.experts) / args.ep);
  require_divides("ffn_hidden_size * local experts", width, kTpFlag, args.tp);
  return Count(moe.gated ? 3 : 2) * moe.in * (width / args.tp);
}

/// What AICB calls attention… is attention, the other linears are the MLP or shared experts.
LayerShape shape_of(const std::vector<Module>& modules, const TrainingArgs& args) {
  LayerShape shape;
  for (const Module& module : modules) {
    const bool attention = module.name.starts_with("attention");
    if (module.kind == ModuleKind::kNorm) {
      shape.attention_norms += 2 * Count(module.in);
    } else if (module.kind == ModuleKind::kMoe) {
      shape.moe = true;
      shape.moe_parameters = routed_parameters(module, args);
    } else {
      shape.mla = shape.mla || module.kind == ModuleKind::kPlainLinear;
      (attention ? shape.attention : shape.mlp).push_back(linear_of(module, args.tp));
    }
  }
  if (shape.moe) {
    shape.moe_parameters += shape.mlp_parameters();
  }
  return shape;
}

Model layers_of(const TrainingArgs& args) {
  LayerValues values{{"hidden_size", args.hidden},
                     {"ffn_hidden_size", args.ffn},
                     {"num_layers", args.layers},
                     {"num_attention_heads", args.heads},
                     {"padded_vocab_size", args.padded_vocab},
                     {"num_experts", args.experts},
                     {"add_bias_linear", args.bias ? 1 : 0}};
  if (args.frame != "DeepSeek") {
    values["moe_enable"] = args.moe ? 1 : 0;
    return aicb_layers("megatron", values);
  }
  values.insert({{"n_dense_layers", args.dense_layers},
                 {"n_shared_expert", args.shared_experts},
                 {"q_lora_rank", args.q_lora},
                 {"kv_lora_rank", args.kv_lora},
                 {"qk_nope_dim", args.nope_dim},
                 {"qk_rope_dim", args.rope_dim},
                 {"v_head_dim", args.v_dim}});
  return aicb_layers("deepseek", values);
}

}  // namespace

Count LayerShape::attention_parameters() const {
  Count sum = attention_norms;
  for (const Linear& linear : attention) {
    sum += linear.parameters;
  }
  return sum;
}

Count LayerShape::mlp_parameters() const {
  Count sum;
  for (const Linear& linear : mlp) {
    sum += linear.parameters;
  }
  return sum;
}

MegatronModel megatron_model(const TrainingArgs& args) {
  MegatronModel model;
  model.deepseek = args.frame == "DeepSeek";
  model.embedding = 4 * (args.padded_vocab / args.tp) * args.hidden + args.seq * args.hidden;
  model.norm = args.hidden * 2;
  const Model layers = layers_of(args);
  for (const LayerBlock& block : layers.blocks) {
    model.runs.push_back({model.shapes.size(), block.layers});
    model.shapes.push_back(shape_of(block.modules, args));
  }
  model.head = linear_of(layers.after.front(), args.tp);
  return model;
}

ParameterSums parameter_sums(const MegatronModel& model, const TrainingArgs& args) {
  ParameterSums sums;
  const bool sp = args.sequence_parallel;
  sums.simai_all = model.embedding + (sp ? model.head.parameters : 0);
  sums.csv_all = model.embedding + model.head.parameters;
  for (const LayerRun& run : model.runs) {
    const LayerShape& shape = model.shapes[run.shape];
    const Count attention = shape.attention_parameters();
    const Count mlp = shape.mlp_parameters();
    sums.simai_all += run.layers * (attention + shape.moe_parameters + mlp + (sp ? model.norm : 0));
    sums.simai_moe += run.layers * shape.moe_parameters;
    sums.csv_all +=
        run.layers * (attention + args.hidden * 3 + (shape.moe ? shape.moe_parameters : mlp));
  }
  return sums;
}

}  // namespace lockstep
