#include "generator/megatron_args/asked_arguments.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {
namespace {

/// Names that forks have for an argument of Megatron-LM's.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"ds_sequence_parallel_size", "context_parallel_size"},      // Megatron-DeepSpeed
    {"moe_expert_parallel_size", "expert_model_parallel_size"},  // the same
    {"topk", "moe_router_topk"},                                 // the same
    {"use_flash_attn_builder", "use_flash_attn"},                // the same, as the next three
    {"use_flash_attn_triton", "use_flash_attn"},
    {"use_flash_attn_v1", "use_flash_attn"},
    {"use_flash_attn_v2", "use_flash_attn"},
};

/// Arguments of forks that change the step and are not followed, and the values that do not.
struct OfForks {
  std::string_view name;
  std::array<std::string_view, 2> otherwise = {};
};
constexpr auto kNotModelled = std::to_array<OfForks>({
    {"context_parallel_algo", {"megatron_cp_algo"}},     // MindSpeed
    {"embed_layernorm"},                                 // BLOOM
    {"first_k_dense_replace", {"0", "-1"}},              // MindSpeed
    {"mlp_type", {"standard"}},                          // Megatron-DeepSpeed
    {"n_shared_experts", {"0"}},                         // MindSpeed
    {"noop_layers"},                                     // MindSpeed
    {"num_layer_list"},                                  // MindSpeed
    {"pp_partition_method", {"parameters", "uniform"}},  // BLOOM
    {"recompute_activation_function"},                   // MindSpeed
    {"swap_attention"},                                  // MindSpeed
});

class Asked {
 public:
  Asked(const TrainingLog& log, const std::string& file, Warnings& warnings)
      : log_(log), file_(file), warnings_(warnings) {
    for (const LoggedArgument& argument : log.arguments) {
      all_.insert_or_assign(argument.name, argument);  // of two the last
    }
  }

  LoggedArguments take() {
    warn_of_forks();
    rename_forks();
    read_deepspeed_experts();
    drop_derived();
    read_vocabulary();
    return std::move(all_);
  }

 private:
  /// Its value; empty: it is not there, or None, or False.
  std::string_view value(std::string_view name) const {
    const auto found = all_.find(name);
    const bool is_set =
        found != all_.end() && found->second.value != "None" && found->second.value != "False";
    return is_set ? std::string_view(found->second.value) : std::string_view();
  }
  std::int64_t number(std::string_view name) const { return to_int(value(name)).value_or(0); }
  bool is_there(std::string_view name) const { return all_.find(name) != all_.end(); }
  void drop(std::string_view name) {
    if (const auto found = all_.find(name); found != all_.end()) {
      all_.erase(found);
    }
  }
  void set(std::string_view name, std::string text, std::size_t line) {
    all_.insert_or_assign(std::string(name),
                          LoggedArgument{std::string(name), std::move(text), line});
  }
  std::size_t line_of(std::string_view name) const {
    const auto found = all_.find(name);
    return found == all_.end() ? log_.line : found->second.line;
  }

  void warn_of_forks() {
    for (const OfForks& each : kNotModelled) {
      const std::string_view given = value(each.name);
      bool changes = !given.empty();
      for (const std::string_view harmless : each.otherwise) {
        changes = changes && given != harmless;
      }
      if (changes) {
        warnings_.add(fmt::format("{}:{}: {} {} is not modelled", file_, line_of(each.name),
                                  each.name, printable(given)));
      }
    }
  }

  void rename_forks() {
    // A list from before these arguments is from before fused attention.
    bool knows_flash = is_there("transformer_impl") || is_there("attention_backend");
    for (const auto& [theirs, ours] : kOtherNames) {
      knows_flash = knows_flash || (ours == "use_flash_attn" && is_there(theirs));
      if (value(ours).empty() || (number(ours) == 1 && number(theirs) > 1)) {
        if (const std::string given(value(theirs)); !given.empty()) {
          set(ours, given, line_of(theirs));
        }
      }
    }
    if (!knows_flash && !is_there("use_flash_attn")) {
      set("transformer_impl", "local", log_.line);
    }
    if (number("ds_sequence_parallel_size") > 1) {
      set("cp_comm_type", "a2a", line_of("ds_sequence_parallel_size"));  // Ulysses
    }
    if (number("num_key_value_heads") > 0 &&
        number("num_key_value_heads") < number("num_attention_heads")) {
      set("group_query_attention", "True", line_of("num_key_value_heads"));
      set("num_query_groups", std::string(value("num_key_value_heads")),
          line_of("num_key_value_heads"));
    }
    if (value("glu_activation") == "swiglu" || value("glu_activation") == "geglu") {
      set("swiglu", "True", line_of("glu_activation"));
    }
    const std::string norm = to_lower(value("normalization"));
    if (norm == "rmsnorm" || norm == "normalization.rmsnorm") {
      set("normalization", "RMSNorm", line_of("normalization"));
    } else if (norm == "layernorm" || norm == "normalization.layernorm") {
      set("normalization", "LayerNorm", line_of("normalization"));
    }
  }

  /// Megatron-DeepSpeed: num_experts is a list, [1] for none; every expert_interval-th layer has
  /// experts, the last of each such run.
  void read_deepspeed_experts() {
    const std::string_view experts = value("num_experts");
    if (!experts.starts_with('[') || !experts.ends_with(']')) {
      return;
    }
    const std::string count(trim(experts.substr(1, experts.size() - 2)));
    const std::size_t line = line_of("num_experts");
    if (count == "1") {
      drop("num_experts");
      return;
    }
    set("num_experts", count, line);
    const std::int64_t interval = number("expert_interval"), layers = number("num_layers");
    if (interval > 1 && layers % interval == 0) {
      set("moe_layer_freq", fmt::format("([0]*{}+[1])*{}", interval - 1, layers / interval),
          line_of("expert_interval"));
    }
  }

  /// What validate_args() sets where nobody asked for something else.
  void drop_derived() {
    const std::int64_t hidden = number("hidden_size"), heads = number("num_attention_heads");
    const std::int64_t ffn = value("swiglu").empty() ? 4 * hidden : 4 * hidden * 2 / 3 / 64 * 64;
    if (number("moe_ffn_hidden_size") == number("ffn_hidden_size")) {
      drop("moe_ffn_hidden_size");
    }
    if (number("ffn_hidden_size") == ffn) {
      drop("ffn_hidden_size");
    }
    if (heads > 0 && number("kv_channels") == hidden / heads) {
      drop("kv_channels");
    }
    if (number("expert_tensor_parallel_size") == number("tensor_model_parallel_size")) {
      drop("expert_tensor_parallel_size");
    }
    if (number("global_batch_size") == number("micro_batch_size") * number("data_parallel_size")) {
      drop("global_batch_size");
    }
    if (value("fp8").empty() || value("fp8_recipe") == "delayed") {
      drop("fp8_recipe");
    }
    drop_derived_chunks();
  }

  /// A pipeline's chunks are asked for by their layers or by their number, and the number is worked
  /// out.
  void drop_derived_chunks() {
    const std::int64_t pp = number("pipeline_model_parallel_size");
    const std::int64_t each = number("num_layers_per_virtual_pipeline_stage");
    const bool chunks = !value("virtual_pipeline_model_parallel_size").empty() || each > 0;
    if (!chunks) {
      drop("overlap_p2p_comm");
    }
    if (!chunks || number("microbatch_group_size_per_vp_stage") == pp) {
      drop("microbatch_group_size_per_vp_stage");
    }
    const bool divide = each > 0 && pp > 0 && number("num_layers") % (pp * each) == 0;
    if (divide) {
      drop("virtual_pipeline_model_parallel_size");
    } else if (is_there("virtual_pipeline_model_parallel_size")) {
      drop("num_layers_per_virtual_pipeline_stage");
    }
    if (is_there("virtual_pipeline_model_parallel_size") || divide) {
      drop("num_virtual_stages_per_pipeline_rank");
    }
  }

  void read_vocabulary() {
    if (log_.vocabulary) {
      set("vocab_size", std::to_string(*log_.vocabulary), log_.line);
      drop("tokenizer_type");
    }
  }

  const TrainingLog& log_;
  const std::string& file_;
  Warnings& warnings_;
  LoggedArguments all_;
};

}  // namespace

LoggedArguments asked_arguments(const TrainingLog& log, const std::string& file,
                                Warnings& warnings) {
  return Asked(log, file, warnings).take();
}

}  // namespace lockstep
