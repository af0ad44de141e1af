#include "generator/inference_model.h"

#include <array>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/compute_profile.h"
#include "generator/layers/aicb_layers.h"
#include "generator/python_text.h"
#include "generator/rules.h"

namespace lockstep {
namespace {

constexpr ArgKind kSwitch = ArgKind::kSwitch;
constexpr ArgKind kInteger = ArgKind::kInteger;
constexpr ArgKind kText = ArgKind::kText;
constexpr std::int64_t kDegree = 1'000'000'000;
constexpr std::int64_t kSize = std::int64_t{1} << 53;
constexpr std::int64_t kLayers = 100'000;

constexpr auto kFlags = std::to_array<ArgSpec>({
    {"model_name", "", kText, "", "first argument: DeepSeek…, Qwen3-Moe…, Qwen3-Next…"},
    {"config", "", kText, "", "second argument: the model's configuration, JSON"},
    {"phase", "", kText, "decode", "what to write", "decode prefill"},
    {"seq_length", "seq_len", kInteger, "1", "tokens per sequence", "", 0, kSize},
    {"micro_batch", "mbs", kInteger, "1", "sequences per GPU", "", 0, kSize},
    {"world_size", "gpus", kInteger, "1", "number of GPUs", "", 0, kDegree},
    {"tensor_model_parallel_size", "tp tp_num", kInteger, "1", "tensor parallel degree", "", 1,
     kDegree},
    {"expert_model_parallel_size", "ep", kInteger, "1", "expert parallel degree", "", 1, kDegree},
    {"pipeline_model_parallel", "pp pp_num pipeline_model_parallel_size", kInteger, "1",
     "pipeline stages; the layers are not divided", "", 1, kDegree},
    {"moe_enable", "moe", kSwitch, "", "accepted; always on"},
    {"result_dir", "", kText, "results/workload/", "accepted; -o names the output"},
    {"aiob_enable", "aiob", kSwitch, "", "compute times are required"},
    {"aiob_forward_loops", "", kInteger, "1", "accepted; how often AIOB measures", "", 0, kDegree},
    {"moe_routing_strategy", "", kText, "RoundRobin", "accepted; no effect"},
});
constexpr auto kPositionals = std::to_array<std::string_view>({"model_name", "config"});
constexpr ArgTable kTable{kFlags, kPositionals};

using Op = InferenceOp;
using Times = std::map<Op, std::int64_t>;

std::int64_t time_of(const Times& times, Op op) {
  const Op timed = op == Op::kSharedExperts ? Op::kDenseMlp : op;
  const auto found = times.find(timed);
  return found == times.end() ? 1 : found->second;
}

/// The operation whose time a section of an AIOB file adds to: the first text it contains.
std::optional<Op> op_of_section(std::string_view name) {
  constexpr auto kSections = std::to_array<std::pair<std::string_view, Op>>({
      {"atten_norm", Op::kAttentionNorm},
      {"gdn", Op::kLinearAttention},
      {"atten", Op::kAttention},
      {"mlp", Op::kDenseMlp},
      {"moe_norm", Op::kMoeNorm},
      {"moe_route", Op::kMoeRoute},
      {"moe", Op::kMoeExpert},
  });
  for (const auto& [text, op] : kSections) {
    if (name.find(text) != std::string_view::npos) {
      return op;
    }
  }
  return std::nullopt;
}

Times read_times(std::string_view text) {
  std::map<Op, double> sums;
  for (const AiobSection& section : read_aiob_sections(text)) {
    if (const std::optional<Op> op = op_of_section(section.name); op.has_value()) {
      for (const AiobSection::Value& value : section.values) {
        sums[*op] += value.average ? value.us * 1000 : 0;
      }
    }
  }
  Times times;
  for (const auto& [op, sum] : sums) {
    if (const std::int64_t ns = python_round(sum); ns != 0) {
      times[op] = ns;
    }
  }
  return times;
}

/// What a line does, by the name AICB gives it.
Op op_of_line(std::string_view name) {
  constexpr auto kLines = std::to_array<std::pair<std::string_view, Op>>({
      {"attention_norm", Op::kAttentionNorm},
      {"attention_layer", Op::kAttention},
      {"attention_gdn", Op::kLinearAttention},
      {"dense_mlp", Op::kDenseMlp},
      {"shared_experts", Op::kSharedExperts},
      {"moe_norm", Op::kMoeNorm},
      {"moe_route", Op::kMoeRoute},
      {"moe_expert", Op::kMoeExpert},
  });
  for (const auto& [line, op] : kLines) {
    if (line == name) {
      return op;
    }
  }
  LOCKSTEP_CHECK(false, "a line of a layer list has a known name");
  return Op::kAttention;
}

void add_layers(InferenceModel& model, const Model& layers, const Times& times) {
  long double rows = 0;
  for (const LayerBlock& block : layers.blocks) {
    InferenceModel::Block& added = model.blocks.emplace_back();
    added.layers = block.layers;
    for (const Module& module : block.modules) {
      const Op op = op_of_line(module.name);
      added.items.push_back({module.name, op, time_of(times, op)});
    }
    rows += static_cast<long double>(block.layers) * static_cast<long double>(added.items.size());
  }
  require_row_limit(rows);
}

void add_deepseek(InferenceModel& model, const JsonView& config, const Times& times) {
  const Count heads = config["num_attention_heads"].integer(1, kSize);
  const Count q = config["d_q"].integer(0, kSize);
  const Count kv = config["d_kv"].integer(0, kSize);
  const Count rope = config["d_r"].integer(0, kSize);
  const Count layers = config["num_layers"].integer(0, kLayers);
  const Count dense = config["dense_layer"].integer(0, kSize);
  const std::string_view flag = "tensor_model_parallel_size";
  if (layers > 0) {
    require_divides("num_attention_heads x (d_q + d_r)", heads * (q + rope), flag, model.tp);
    require_divides("num_attention_heads x 2 x d_kv", heads * 2 * kv, flag, model.tp);
    require_divides("num_attention_heads x d_kv", heads * kv, flag, model.tp);
  }
  // AICB makes every layer of it, but cuts that of dense ones alone.
  const Count expert_dim = layers > 0 ? config["expert_dim"].integer(0, kSize) : 0;
  if (dense > 0) {
    require_divides("expert_dim", expert_dim, flag, model.tp);
  }
  if (config.has("vocab_size")) {  // of the last linear, which has no line
    require_divides("vocab_size", config["vocab_size"].integer(0, kSize), flag, model.tp);
  }
  add_layers(model,
             aicb_layers("inference-deepseek",
                         {{"num_layers", layers.value},
                          {"dense_layer", dense.value},
                          {"shared_experts", config["shared_experts"].integer(0, 1000)}}),
             times);
  // AICB gives DeepSeek's routing no time of its own.
  for (InferenceModel::Block& block : model.blocks) {
    for (InferenceModel::Item& item : block.items) {
      item.ns = item.op == Op::kMoeRoute ? 1 : item.ns;
    }
  }
  model.route_is_timed = false;
}

enum class Family { kQwenMoe, kQwenNext, kDeepSeek };

Family family_of(InferenceModel& model, const ArgValues& flags) {
  const std::string wanted = flags.text_if("model_name").value_or("");
  constexpr auto kFamilies = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"Qwen3-Moe", "Qwen3-Moe-235B"},
       {"Qwen3-Next", "Qwen3-Next-80B"},
       {"DeepSeek", "DeepSeek-671B"}});
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    if (wanted.find(kFamilies[i].first) != std::string::npos) {
      model.name = kFamilies[i].second;
      return static_cast<Family>(i);
    }
  }
  throw Error(wanted.empty() ? std::string("no model is named")
                             : fmt::format("unknown model '{}'", printable(wanted)))
      .field("model_name")
      .expected("a name with DeepSeek, Qwen3-Moe or Qwen3-Next in it");
}

void check_world(const InferenceModel& model) {
  for (const auto& [flag, degree] :
       {std::pair{"world_size", Count(1)}, std::pair{"tensor_model_parallel_size", model.tp},
        std::pair{"expert_model_parallel_size", model.ep}}) {
    if (model.world_size < degree) {
      throw Error(fmt::format("{} GPUs are fewer than {}", model.world_size.value, degree.value))
          .field(fmt::format("--{}", flag))
          .expected(fmt::format("a world_size of {} or more", degree.value));
    }
  }
}

Times find_times(const InferenceModel& model, const ArgValues& flags, const std::string& folder,
                 Warnings& warnings) {
  const std::string path = path_in(
      folder, fmt::format("results/aiob_outputs/{}-world_size{}-tp{}-pp{}-ep{}-bpg{}-seq{}-{}.txt",
                          model.name, model.world_size.value, model.tp.value, model.pp.value,
                          model.ep.value, model.micro_batch.value, model.seq.value, model.phase));
  if (std::filesystem::exists(path)) {
    const FileText file(path, Bytes(kMaxAiobBytes));
    warn_of_aiob_times(file.marked_view(), warnings);
    try {
      return read_times(file.marked_view());
    } catch (Error& error) {
      throw std::move(error).at(path);
    }
  }
  if (flags.on("aiob_enable")) {
    throw Error("the compute-time file is missing")
        .at(path)
        .field("--aiob_enable")
        .hint("AICB's AIOB measures it on a GPU; without the flag every time is 1");
  }
  return {};
}

}  // namespace

const ArgTable& inference_flag_table() { return kTable; }

InferenceModel inference_model(const GenerateRequest& request, Warnings& warnings) {
  const ArgValues flags = parse_args(kTable, request.words);
  InferenceModel model;
  const Family family = family_of(model, flags);
  model.phase = flags.text("phase");
  model.world_size = flags.integer("world_size");
  model.tp = flags.integer("tensor_model_parallel_size");
  model.pp = flags.integer("pipeline_model_parallel");
  model.ep = flags.integer("expert_model_parallel_size");
  model.micro_batch = flags.integer("micro_batch");
  model.seq = flags.integer("seq_length");
  check_world(model);
  const std::string config_name = flags.text_if("config").value_or("");
  if (config_name.empty()) {
    throw Error("the model's configuration file is missing")
        .field("config")
        .expected("a JSON file after the model's name");
  }
  const std::string path = path_in(request.folder, config_name);
  const FileText file(path, Bytes(1 << 26));
  const Json json = parse_json(file.view(), path);
  const JsonView config(json, path);
  if (config.has("model_name")) {
    model.name = config["model_name"].string();  // AICB takes each key over after its own name
  }
  model.hidden = config["hidden_size"].integer(0, kSize);
  const char* topk_key = config.has("moe_router_topk") ? "moe_router_topk" : "num_experts_per_tok";
  const Count topk = config[topk_key].integer(0, kDegree);
  model.tokens = model.phase == "decode" ? model.micro_batch : model.seq;
  model.activation = 2 * model.tokens * model.hidden;
  model.combine = model.activation * topk / model.tp;
  model.dispatch = model.combine * 33 / 64;  // FP8 and a 4-byte scale each 128 values
  const Times times = find_times(model, flags, request.folder, warnings);
  switch (family) {
    case Family::kDeepSeek:
      add_deepseek(model, config, times);
      break;
    case Family::kQwenMoe:
      add_layers(
          model,
          aicb_layers("inference-qwen3-moe",
                      {{"num_hidden_layers", config["num_hidden_layers"].integer(0, kLayers)}}),
          times);
      break;
    case Family::kQwenNext:
      add_layers(
          model,
          aicb_layers(
              "inference-qwen3-next",
              {{"num_hidden_layers", config["num_hidden_layers"].integer(0, kLayers)},
               {"full_attention_interval", config["full_attention_interval"].integer(1, kLayers)}}),
          times);
      break;
  }
  return model;
}

std::string inference_base_name(const InferenceModel& model) {
  return fmt::format("{}-world_size{}-tp{}-pp{}-ep{}-bs{}-seq{}-{}", model.name,
                     model.world_size.value, model.tp.value, model.pp.value, model.ep.value,
                     model.micro_batch.value, model.seq.value, model.phase);
}

}  // namespace lockstep
