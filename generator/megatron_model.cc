#include "generator/megatron_model.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "generator/rules.h"

namespace lockstep {
namespace {

constexpr std::string_view kTpFlag = "tensor_model_parallel_size";

/// `what` says in the user's flags what the size is that tp cuts.
Linear column(const TrainingArgs& args, std::string_view name, Count in, Count out,
              std::string_view what) {
  require_divides(what, out, kTpFlag, args.tp);
  const Count share = out / args.tp;
  return {name, LinearKind::kColumn, in, out, in * share + (args.bias ? share : 0)};
}

Linear row(const TrainingArgs& args, std::string_view name, Count in, Count out,
           std::string_view what) {
  require_divides(what, in, kTpFlag, args.tp);
  return {name, LinearKind::kRow, in, out, out * (in / args.tp) + (args.bias ? out : 0)};
}

Linear plain(const TrainingArgs& args, std::string_view name, Count in, Count out) {
  return {name, LinearKind::kPlain, in, out, in * out + (args.bias ? out : 0)};
}

std::vector<Linear> dense_mlp(const TrainingArgs& args) {
  return {column(args, "mlp_column", args.hidden, args.ffn, "ffn_hidden_size"),
          row(args, "mlp_row", args.ffn, args.hidden, "ffn_hidden_size")};
}

void add_attention(LayerShape& shape, const TrainingArgs& args) {
  const Count width = args.hidden / args.heads * args.heads;  // of all heads together
  const std::string what = width == args.hidden ? "hidden_size" : "num_attention_heads x head size";
  shape.attention = {column(args, "attention_column", args.hidden, width * 3, "3 x " + what),
                     row(args, "attention_row", width, args.hidden, what)};
}

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).
void add_latent_attention(LayerShape& shape, const TrainingArgs& args) {
  const Count q_head = args.nope_dim + args.rope_dim;
  shape.mla = true;
  shape.attention = {
      plain(args, "attention_linear_q_lora", args.hidden, args.q_lora),
      column(args, "attention_q_column", args.q_lora, args.heads * q_head,
             "num_attention_heads x (qk_nope_dim + qk_rope_dim)"),
      plain(args, "attention_linear_kv_lora", args.hidden, args.kv_lora + args.rope_dim),
      column(args, "attention_kv_column", args.kv_lora, args.heads * (args.nope_dim + args.v_dim),
             "num_attention_heads x (qk_nope_dim + v_head_dim)"),
      row(args, "attention_o_row", args.heads * args.v_dim, args.hidden,
          "num_attention_heads x v_head_dim")};
  shape.attention_norms = args.q_lora * 2 + args.kv_lora * 2;
}

Count routed_parameters(const TrainingArgs& args, Count matrices) {
  const Count width = args.ffn * (args.experts / args.ep);
  require_divides("ffn_hidden_size x local experts", width, kTpFlag, args.tp);
  return matrices * args.hidden * (width / args.tp);
}

LayerShape megatron_layer(const TrainingArgs& args) {
  LayerShape shape;
  add_attention(shape, args);
  if (args.moe) {
    shape.moe = true;
    shape.moe_parameters = routed_parameters(args, 2);
  } else {
    shape.mlp = dense_mlp(args);
  }
  return shape;
}

LayerShape deepseek_layer(const TrainingArgs& args, bool moe) {
  LayerShape shape;
  add_latent_attention(shape, args);
  shape.moe = moe;
  if (!moe || args.shared_experts > 0) {
    shape.mlp = dense_mlp(args);
  }
  if (moe) {
    shape.moe_parameters = routed_parameters(args, 3) + shape.mlp_parameters();
  }
  return shape;
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
  if (args.heads < 1) {
    throw Error("a model needs an attention head").field("--num_attention_heads").expected(">= 1");
  }
  MegatronModel model;
  model.deepseek = args.frame == "DeepSeek";
  model.embedding = 4 * (args.padded_vocab / args.tp) * args.hidden + args.seq * args.hidden;
  model.norm = args.hidden * 2;
  const Count dense = model.deepseek ? std::min(args.dense_layers, args.layers) : 0;
  if (!model.deepseek && args.layers > 0) {
    model.shapes.push_back(megatron_layer(args));
    model.runs.push_back({0, args.layers});
  }
  if (model.deepseek && dense > 0) {
    model.shapes.push_back(deepseek_layer(args, false));
    model.runs.push_back({0, dense});
  }
  if (model.deepseek && args.layers > dense) {
    model.runs.push_back({model.shapes.size(), args.layers - dense});
    model.shapes.push_back(deepseek_layer(args, true));
  }
  model.head =
      column(args, "final_column", args.hidden, args.padded_vocab, "the padded vocabulary");
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
