#include "generator/presets.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/count.h"

namespace lockstep {
namespace {

constexpr auto kPresets = std::to_array<Preset>({
    {"gpt-7b", "7", "model_name=gpt_7B num_layers=36 hidden_size=4096 num_attention_heads=32",
     "tensor_model_parallel_size=4", ""},
    {"gpt-13b", "13", "model_name=gpt_13B num_layers=40 hidden_size=5120 num_attention_heads=40",
     "", ""},
    {"gpt-22b", "22", "model_name=gpt_22B num_layers=48 hidden_size=6144 num_attention_heads=64",
     "tensor_model_parallel_size=8", "tensor_model_parallel_size=8"},
    {"llama-65b", "65",
     "model_name=llama_65B num_layers=80 hidden_size=8192 num_attention_heads=64 "
     "ffn_hidden_size=28672",
     "", "tensor_model_parallel_size=8 pipeline_model_parallel=2", false},
    {"gpt-175b", "175",
     "model_name=gpt_175B num_layers=96 hidden_size=12288 num_attention_heads=96",
     "tensor_model_parallel_size=8", "tensor_model_parallel_size=8"},
    {"llama-405b", "405",
     "model_name=llama_405B num_layers=128 hidden_size=16384 num_attention_heads=128 "
     "ffn_hidden_size=53248",
     "", "tensor_model_parallel_size=8 pipeline_model_parallel=16"},
    {"mixtral-8x7b", "moe",
     "model_name=Mixtral_8*7B num_layers=32 hidden_size=4096 num_attention_heads=32 "
     "ffn_hidden_size=14336 moe_enable moe_grouped_gemm",
     "tensor_model_parallel_size=4", "tensor_model_parallel_size=2"},
    {"deepseek-671b", "deepseek671",
     "model_name=DeepSeek_671B num_layers=61 hidden_size=18432 num_attention_heads=128 "
     "ffn_hidden_size=2048 frame=DeepSeek moe_enable num_experts=256 n_shared_expert=1 "
     "n_dense_layers=3 q_lora_rank=1536 kv_lora_rank=512 qk_nope_dim=128 qk_rope_dim=64 "
     "v_head_dim=128",
     "tensor_model_parallel_size=1", "tensor_model_parallel_size=1"},
    {"deepseek-236b", "deepseek236",
     "model_name=DeepSeek_236B num_layers=60 hidden_size=12288 num_attention_heads=128 "
     "ffn_hidden_size=1536 frame=DeepSeek moe_enable num_experts=160 n_shared_expert=2 "
     "n_dense_layers=1 q_lora_rank=1536 kv_lora_rank=512 qk_nope_dim=128 qk_rope_dim=64 "
     "v_head_dim=128",
     "tensor_model_parallel_size=1", "tensor_model_parallel_size=1"},
    {"deepseek-16b", "deepseek16",
     "model_name=DeepSeek_16B num_layers=27 hidden_size=10944 num_attention_heads=16 "
     "ffn_hidden_size=1408 frame=DeepSeek moe_enable num_experts=64 n_shared_expert=2 "
     "n_dense_layers=1 q_lora_rank=0 kv_lora_rank=512 qk_nope_dim=128 qk_rope_dim=64 "
     "v_head_dim=128",
     "tensor_model_parallel_size=1", "tensor_model_parallel_size=1"},
    {"deepseek", "deepseek", "model_name=DeepSeek frame=DeepSeek moe_enable", "", ""},
});

constexpr auto kDeepSpeedPresets = std::to_array<Preset>({
    {"llama-7b", "7",
     "model_name=llama_7b num_layers=32 hidden_size=4096 ffn_hidden_size=11008 "
     "num_attention_heads=32",
     "", ""},
    {"llama-13b", "13",
     "model_name=llama_13b num_layers=40 hidden_size=5120 ffn_hidden_size=13824 "
     "num_attention_heads=40",
     "", ""},
    {"llama-30b", "30",
     "model_name=llama_30b num_layers=60 hidden_size=6656 ffn_hidden_size=17920 "
     "num_attention_heads=52",
     "", ""},
    {"llama-65b", "65",
     "model_name=llama_65b num_layers=80 hidden_size=8192 ffn_hidden_size=22016 "
     "num_attention_heads=64",
     "", ""},
});

constexpr std::string_view kSimaiDefaults =
    "world_size=32 tensor_model_parallel_size=8 global_batch=1024 num_layers=40 hidden_size=5120 "
    "num_attention_heads=40 seq_length=4096 vocab_size=50257 max_position_embeddings=4096 "
    "use_distributed_optimizer";
constexpr std::string_view kMegatronDefaults =
    "world_size=32 vocab_size=50257 max_position_embeddings=4096 use_distributed_optimizer";
constexpr std::string_view kDeepSpeedDefaults =
    "world_size=8 frame=DeepSpeed stage=3 seq_length=2048 micro_batch=4 epoch_num=10";

const Preset& preset_named(std::span<const Preset> list, std::string_view name) {
  if (const Preset* preset = find_preset(list, name); preset != nullptr) {
    return *preset;
  }
  std::vector<std::string_view> names;
  for (const Preset& preset : list) {
    names.push_back(preset.name);
  }
  const std::string_view near = closest(name, names);
  throw Error(fmt::format("unknown model '{}'", printable(name)))
      .field("--model")
      .expected(join(names, ", "))
      .hint(fmt::format("{}the models of --list-models are for use without --generator",
                        near.empty() ? std::string() : fmt::format("did you mean '{}'? ", near)));
}

/// Both scripts but SimAI's choose the batch by the size of the job.
void default_batch(ArgValues& flags, Count per_gpu_group) {
  const Count cut =
      Count(flags.integer("tensor_model_parallel_size")) * flags.integer("pipeline_model_parallel");
  const Count dp = Count(flags.integer("world_size")) / cut;
  flags.set_default("global_batch", std::to_string((per_gpu_group * dp).value));
}

}  // namespace

void set_all(ArgValues& flags, std::string_view values, Over over) {
  for (const std::string_view word : split_blanks(values)) {
    const std::size_t equals = word.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    if (over == Over::kReplace) {
      flags.set(word.substr(0, equals), value);
    } else {
      flags.set_default(word.substr(0, equals), value);
    }
  }
}

const Preset* find_preset(std::span<const Preset> list, std::string_view name) {
  const std::string lower = to_lower(name);
  for (const Preset& preset : list) {
    if (preset.name == lower || preset.script_key == lower) {
      return &preset;
    }
  }
  return nullptr;
}

std::string_view script_defaults(PresetFamily family) {
  return family == PresetFamily::kSimai      ? kSimaiDefaults
         : family == PresetFamily::kMegatron ? kMegatronDefaults
                                             : kDeepSpeedDefaults;
}

std::span<const Preset> presets() { return kPresets; }
std::span<const Preset> deepspeed_presets() { return kDeepSpeedPresets; }

void apply_preset(ArgValues& flags, PresetFamily family) {
  if (!flags.given("model")) {
    return;
  }
  const bool deepspeed = family == PresetFamily::kDeepSpeed;
  const Preset& preset =
      preset_named(deepspeed ? deepspeed_presets() : presets(), flags.text("model"));
  set_all(flags, preset.values, Over::kKeepGiven);
  switch (family) {
    case PresetFamily::kSimai:
      set_all(flags, preset.simai, Over::kKeepGiven);
      set_all(flags, kSimaiDefaults, Over::kKeepGiven);
      break;
    case PresetFamily::kMegatron:
      set_all(flags, preset.megatron, Over::kKeepGiven);
      set_all(flags, kMegatronDefaults, Over::kKeepGiven);
      default_batch(flags, Count(2) * flags.integer("micro_batch"));
      break;
    case PresetFamily::kDeepSpeed:
      set_all(flags, kDeepSpeedDefaults, Over::kKeepGiven);
      default_batch(flags, flags.integer("micro_batch"));
      break;
  }
}

}  // namespace lockstep
