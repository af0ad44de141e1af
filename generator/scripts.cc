#include "generator/scripts.h"

#include <array>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/count.h"
#include "generator/python_text.h"
#include "generator/training_flags.h"

namespace lockstep {
namespace {

enum class Take : std::uint8_t {
  kFlag,         ///< sets `flag`: a switch, or with the next word
  kNodes,        ///< the next word is a number of nodes
  kGpus,         ///< … of GPUs a node
  kNothing,      ///< the next word changes nothing
  kSwitchAndOn,  ///< sets the switch `flag` and passes over the next word
};

/// A spelling of a script and the flag it sets.
struct ScriptSpelling {
  std::string_view spelling, flag;
  Take take = Take::kFlag;
};

constexpr auto kSimaiSpellings = std::to_array<ScriptSpelling>({
    {"--gpu_type", "gpu_type"},
    {"--frame", "frame"},
    {"--world_size", "world_size"},
    {"--tensor_model_parallel_size", "tensor_model_parallel_size"},
    {"--tp", "tensor_model_parallel_size"},
    {"--pipeline_model_parallel", "pipeline_model_parallel"},
    {"--pp", "pipeline_model_parallel"},
    {"--global_batch", "global_batch"},
    {"--micro_batch", "micro_batch"},
    {"--num_layers", "num_layers"},
    {"--seq_length", "seq_length"},
    {"--hidden_size", "hidden_size"},
    {"--epoch_num", "epoch_num"},
    {"--num_attention_heads", "num_attention_heads"},
    {"--aiob_enable", "aiob_enable"},
    {"--aiob", "aiob_enable"},
    {"--use_flash_attn", "use_flash_attn"},
    {"--flash_attn", "use_flash_attn"},
    {"--swiglu", "swiglu"},
    {"--ffn_hidden_size", "ffn_hidden_size"},
    {"--sp", "enable_sequence_parallel"},
    {"--sp-enable", "enable_sequence_parallel"},
    {"--comp_filepath", "comp_filepath"},
    {"--model", "model"},
    {"--model_size", "model"},
    {"-m", "model"},
    {"--max_position_embeddings", "max_position_embeddings"},
    {"--moe_enable", "moe_enable"},
    {"--moe_router_topk", "moe_router_topk"},
    {"--topk", "moe_router_topk"},
    {"--num_experts", "num_experts"},
    {"--experts", "num_experts"},
    {"--expert_model_parallel_size", "expert_model_parallel_size"},
    {"--ep", "expert_model_parallel_size"},
    {"--grouped_gemm", "moe_grouped_gemm"},
    {"--moe_grouped_gemm", "moe_grouped_gemm"},
    {"--recompute_activations", "recompute_activations"},
    {"--recompute", "recompute_activations"},
});

constexpr auto kMegatronSpellings = std::to_array<ScriptSpelling>({
    {"--frame", "frame"},
    {"--world_size", "world_size"},
    {"--tensor_model_parallel_size", "tensor_model_parallel_size"},
    {"tp_num", "tensor_model_parallel_size"},
    {"--pipeline_model_parallel_size", "pipeline_model_parallel"},
    {"pp_num", "pipeline_model_parallel"},
    {"--context_parallel_size", "context_parallel_size"},
    {"cp_num", "context_parallel_size"},
    {"--global_batch", "global_batch"},
    {"--micro_batch", "micro_batch"},
    {"--num_layers", "num_layers"},
    {"--seq_length", "seq_length"},
    {"--hidden_size", "hidden_size"},
    {"--epoch_num", "epoch_num"},
    {"--num_attention_heads", "num_attention_heads"},
    {"--aiob_enable", "aiob_enable"},
    {"--enable_visual", "enable_visual"},
    {"--workload_only", "workload_only"},
    {"--use_flash_attn", "use_flash_attn"},
    {"--swiglu", "swiglu"},
    {"--ffn_hidden_size", "ffn_hidden_size"},
    {"--sp", "enable_sequence_parallel"},
    {"--sp-enable", "enable_sequence_parallel"},
    {"--enable_sequence_parallel", "enable_sequence_parallel"},
    {"--comp_filepath", "comp_filepath"},
    {"-m", "model"},
    {"--model_size", "model"},
    {"--moe_enable", "moe_enable"},
    {"--moe_router_topk", "moe_router_topk"},
    {"--topk", "moe_router_topk"},
    {"--num_experts", "num_experts"},
    {"--experts", "num_experts"},
    {"--expert_model_parallel_size", "expert_model_parallel_size"},
    {"--ep", "expert_model_parallel_size"},
    {"--grouped_gemm", "moe_grouped_gemm"},
    {"--moe_grouped_gemm", "moe_grouped_gemm"},
    {"--nnodes", "", Take::kNodes},
    {"--nproc_per_node", "", Take::kGpus},
    {"--node_rank", "", Take::kNothing},
    {"--master_addr", "", Take::kNothing},
    {"--master_port", "", Take::kNothing},
});

constexpr auto kDeepSpeedSpellings = std::to_array<ScriptSpelling>({
    {"--model_name", "model_name"},
    {"--model-name", "model_name"},
    {"--stage", "stage"},
    {"--zero-stage", "stage"},
    {"--zero_stage", "stage"},
    {"--epoch-num", "epoch_num"},
    {"--epoch_num", "epoch_num"},
    {"--batch-size", "micro_batch"},
    {"--batch_size", "micro_batch"},
    {"--micro_batch", "micro_batch"},
    {"-m", "model"},
    {"--model-size", "model"},
    {"--reduce-bucket-size", "reduce_bucket_size"},
    {"--reduce_bucket_size", "reduce_bucket_size"},
    {"--allgather-bucket-size", "allgather_bucket_size"},
    {"--allgather_bucket_size", "allgather_bucket_size"},
    {"--param-persistence-threshold", "param_persistence_threshold"},
    {"--param_persistence_threshold", "param_persistence_threshold"},
    {"--max-live-parameters", "", Take::kNothing},
    {"--max_live_parameters", "", Take::kNothing},
    {"--seq-len", "seq_length"},
    {"--seq_len", "seq_length"},
    {"--aiob_enable", "aiob_enable"},
    {"--enable_visual", "enable_visual"},
    {"--workload_only", "workload_only"},
    {"--contiguous-gradients", "contiguous_gradients", Take::kSwitchAndOn},
    {"--contiguous_gradients", "contiguous_gradients", Take::kSwitchAndOn},
});

constexpr std::string_view kMegatronScript =
    "tensor_model_parallel_size=8 seq_length=2048 num_experts=1";

std::span<const ScriptSpelling> spellings_of(PresetFamily family) {
  return family == PresetFamily::kSimai      ? std::span<const ScriptSpelling>(kSimaiSpellings)
         : family == PresetFamily::kMegatron ? std::span<const ScriptSpelling>(kMegatronSpellings)
                                             : std::span<const ScriptSpelling>(kDeepSpeedSpellings);
}

/// The words a script knows, and the machine they describe.
class ScriptReader {
 public:
  ScriptReader(PresetFamily family, std::span<const std::string> words)
      : words_(words), known_(spellings_of(family)), flags_(training_flag_table()) {}

  void run() {
    for (at_ = 0; at_ < words_.size(); ++at_) {
      const ScriptSpelling* found = nullptr;
      for (const ScriptSpelling& each : known_) {
        found = each.spelling == words_[at_] ? &each : found;
      }
      if (found == nullptr) {
        return;
      }
      take(*found);
    }
  }
  ArgValues& flags() { return flags_; }
  Count gpus() const { return nodes_ * per_node_; }

 private:
  const std::string& value() {
    if (at_ + 1 >= words_.size()) {
      throw Error("this flag needs a value").field(words_[at_]);
    }
    return words_[++at_];
  }
  Count count() {
    const std::string& flag = words_[at_];
    const std::string& text = value();
    const std::optional<std::int64_t> number = python_int(text);
    if (!number || *number < 1 || *number > 1'000'000) {
      throw Error("'" + text + "' does not say how many")
          .field(flag)
          .expected("a whole number from 1 to 1000000");
    }
    return *number;
  }
  void take(const ScriptSpelling& spelling) {
    switch (spelling.take) {
      case Take::kFlag:
        flags_.set(spelling.flag, is_switch(spelling.flag) ? std::string() : value());
        break;
      case Take::kNodes:
        nodes_ = count();
        break;
      case Take::kGpus:
        per_node_ = count();
        break;
      case Take::kNothing:
        value();
        break;
      case Take::kSwitchAndOn:
        flags_.set(spelling.flag, "");
        ++at_;
        break;
    }
  }
  bool is_switch(std::string_view name) const {
    for (const ArgSpec& flag : flags_.table().flags) {
      if (flag.name == name) {
        return flag.kind == ArgKind::kSwitch;
      }
    }
    return false;
  }

  std::span<const std::string> words_;
  std::span<const ScriptSpelling> known_;
  ArgValues flags_;
  std::size_t at_ = 0;
  Count nodes_ = 1, per_node_ = 8;
};

/// The preset that the script takes for --model, which may be by our name, too.
const Preset* script_preset(const ArgValues& flags, PresetFamily family, Warnings* warnings) {
  const bool deepspeed = family == PresetFamily::kDeepSpeed;
  const std::string name = flags.given("model") ? flags.text("model") : deepspeed ? "7" : "13";
  const std::span<const Preset> known = deepspeed ? deepspeed_presets() : presets();
  for (const Preset& preset : known) {  // in no other case, as the script's
    if ((preset.script_key == name || preset.name == name) &&
        (family != PresetFamily::kSimai || preset.in_simai_script)) {
      return &preset;
    }
  }
  const Preset* const taken = find_preset(known, deepspeed ? "7" : "13");
  if (warnings != nullptr) {
    warnings->add(fmt::format("the script has no model '{}' and takes {} for it",
                              printable(name, 60), taken->name));
  }
  return taken;
}

}  // namespace

ArgValues script_flags(PresetFamily family, std::span<const std::string> words,
                       Warnings* warnings) {
  ScriptReader reader(family, words);
  reader.run();
  ArgValues flags = reader.flags();
  const Preset& preset = *script_preset(flags, family, warnings);
  // For its 7B model the DeepSpeed script keeps a name that the user gave.
  const bool keeps = family == PresetFamily::kDeepSpeed && preset.script_key == "7";
  set_all(flags, preset.values, keeps ? Over::kKeepGiven : Over::kReplace);
  switch (family) {
    case PresetFamily::kSimai:
      set_all(flags, preset.simai, Over::kReplace);
      break;
    case PresetFamily::kMegatron: {
      set_all(flags, preset.megatron, Over::kReplace);
      set_all(flags, kMegatronScript, Over::kKeepGiven);
      // A variable of the shell, which counts as 0 where nobody sets it.
      const Count world = flags.given("world_size") ? Count(flags.integer("world_size")) : Count(0);
      if (world == 0 && warnings != nullptr) {
        warnings->add(
            "the script makes the batch from --world_size: without it there are no microbatches");
      }
      const Count dp = world / flags.integer("tensor_model_parallel_size") /
                       flags.integer("pipeline_model_parallel");
      flags.set("global_batch", std::to_string((2 * dp * flags.integer("micro_batch")).value));
      flags.set("world_size", std::to_string(reader.gpus().value));
      break;
    }
    case PresetFamily::kDeepSpeed:
      set_all(flags, script_defaults(family), Over::kKeepGiven);
      flags.set("global_batch", std::to_string((8 * Count(flags.integer("micro_batch"))).value));
      break;
  }
  set_all(flags, script_defaults(family), Over::kKeepGiven);
  return flags;
}

ArgValues training_flags(const GenerateRequest& request, PresetFamily family, Warnings* warnings) {
  if (request.script_compat) {
    return script_flags(family, request.words, warnings);
  }
  ArgValues flags = parse_args(training_flag_table(), request.words);
  apply_preset(flags, family);
  return flags;
}

}  // namespace lockstep
