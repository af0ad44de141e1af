#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "workloads/comm.h"

namespace lockstep {

/// What a module of a model is, as far as cost and communication are concerned.
enum class ModuleKind : std::uint8_t {
  kEmbedding,     ///< table of `in` rows by `out`; cut by rows over tp, but for whole ones
  kColumnLinear,  ///< in -> out, cut over tp by output (Megatron's ColumnParallelLinear)
  kRowLinear,     ///< in -> out, cut over tp by input; its result is reduced over tp
  kPlainLinear,   ///< in -> out, on every tp rank whole
  kNorm,  ///< over `out` elements a token; weights `in` long (a head's, if by head), twice that for
          ///< LayerNorm
  kAttention,   ///< heads, kv_heads, head_dim (of queries and keys), value_dim; no parameters
  kActivation,  ///< elementwise; `in` elements a token in, `out` out (gated: in = 2 out)
  kMoe,         ///< router, dispatch, experts, combine: the Moe fields
  kHead,        ///< hidden -> vocabulary, cut by output; may share the embedding's table
  kCustom,      ///< params, flops and bytes given by the model's author
};

/// The groups within a pass: "tp", "cp", "ep", "tp.expert".
enum class ModuleGroup : std::uint8_t { kTp, kCp, kEp, kExpertTp };

/// A collective that a custom module's author gives.
struct ModuleComm {
  CommType comm = CommType::kAllReduce;
  ModuleGroup group = ModuleGroup::kTp;
  double bytes = 0;  ///< a token of the rank's: the full tensor
};

/// One module with its sizes worked out, for the whole model (before any cut) and one token.
struct Module {
  std::string name;  ///< "attention.qkv"
  ModuleKind kind = ModuleKind::kPlainLinear;
  std::int64_t in = 0, out = 0;
  std::string in_text, out_text;  ///< of linears, heads, embeddings: as the file has them
  bool bias = false;
  bool shared = false;  ///< its parameters are those of an earlier module (tied head)
  // kEmbedding
  bool whole = false;  ///< each rank of a tensor-parallel group has all of it (positions)
  // kColumnLinear
  bool cross = false;  ///< reads the encoder's output, not what stands before it
  // kRowLinear
  bool parallel = false;  ///< added to the next row linear's output and reduced with it
  // kNorm
  bool rms = true;
  // kAttention
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  std::int64_t window = 0;  ///< sliding window in tokens; 0: whole sequence
  bool causal = true;
  // kMoe: experts are gated MLPs of width expert_ffn, in -> in
  std::int64_t experts = 0, topk = 0, expert_ffn = 0;
  std::int64_t shared_ffn = 0;  ///< width of the always-active experts together; 0: none
  bool gated = true;
  bool router_bias = false;  ///< of the router; `bias` is of the experts
  // kCustom: whole model, a token (parameters: once)
  std::int64_t custom_parameters = 0;
  double custom_flops = 0, custom_bytes = 0;
  std::vector<ModuleComm> custom_forward, custom_backward;  ///< behind its work, in order
};

/// Equal layers in a row.
struct LayerBlock {
  std::string name;  ///< "decoder", "dense decoder", "encoder", …
  std::int64_t layers = 1;
  std::vector<Module> modules;  ///< in order of execution
};

/// A model as data: what is before the layers, the layers, what is after. Pipeline stages are cut
/// between layers; `before` stays with the first layer and `after` with the last.
struct Model {
  std::string name;
  std::map<std::string, double> variables;  ///< hidden, layers, heads, … as given
  std::vector<Module> before;
  std::vector<LayerBlock> blocks;
  std::vector<Module> after;
  double published_parameters = 0;  ///< 0: not known
  std::string source;               ///< where the figures come from
};

/// Whether any of its layers has an MoE.
inline bool has_experts(const Model& model) {
  return std::ranges::any_of(model.blocks, [](const LayerBlock& block) {
    return std::ranges::find(block.modules, ModuleKind::kMoe, &Module::kind) != block.modules.end();
  });
}

}  // namespace lockstep
