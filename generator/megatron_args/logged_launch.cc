// A training's log as the launch that it is of: the arguments that it lists are flags again.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generator/megatron_args/asked_arguments.h"
#include "generator/megatron_args/megatron_launch.h"
#include "generator/megatron_args/shell_lexer.h"

namespace lockstep {
namespace {

/// Arguments whose flag has another name (arguments.py, dest=). `off`: the flag is there where the
/// argument is False.
struct Renamed {
  std::string_view argument, flag;
  bool off = false;
};
constexpr auto kRenamed = std::to_array<Renamed>({
    {"add_bias_linear", "disable-bias-linear", true},
    {"add_position_embedding", "no-position-embedding", true},
    {"overlap_p2p_comm", "no-overlap-p2p-communication", true},
    {"tp_comm_overlap_ag", "disable-tp-comm-overlap-ag", true},
    {"tp_comm_overlap_rs", "disable-tp-comm-overlap-rs", true},
    {"torch_fsdp2_reshard_after_forward", "torch-fsdp2-no-reshard-after-forward", true},
    {"fp8_wgrad", "no-fp8-wgrad", true},
    {"fp8", "fp8-format"},
    {"fp4", "fp4-format"},
    {"microbatch_group_size_per_vp_stage", "microbatch-group-size-per-virtual-pipeline-stage"},
    {"virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
});

const Renamed* renamed(std::string_view argument) {
  for (const Renamed& each : kRenamed) {
    if (each.argument == argument) {
      return &each;
    }
  }
  return nullptr;
}

/// Values that a flag has other words for: PyTorch's types, Megatron-DeepSpeed's positions.
std::string_view flag_word(std::string_view value) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"torch.float32", "fp32"},
      {"torch.float", "fp32"},
      {"torch.bfloat16", "bf16"},
      {"torch.float16", "fp16"},
      {"torch.half", "fp16"},
      {"torch.uint8", "fp8"},
      {"PositionEmbeddingType.rotary", "rope"},
      {"PositionEmbeddingType.absolute", "learned_absolute"},
      {"PositionEmbeddingType.alibi", "none"}};
  for (const auto& [theirs, ours] : kWords) {
    if (value == theirs) {
      return ours;
    }
  }
  return value;
}

/// A value of an enumeration, "AttnBackend.auto", without the enumeration's name.
std::string_view without_class(std::string_view value) {
  const std::size_t dot = value.find('.');
  const std::string_view before = value.substr(0, dot);
  const bool is_class = dot != std::string_view::npos && !before.empty() && before[0] >= 'A' &&
                        before[0] <= 'Z' && is_shell_name(before) &&
                        is_shell_name(value.substr(dot + 1));
  return is_class ? value.substr(dot + 1) : value;
}

/// The words of a value as the flag has them: of a list of texts each, of other values one.
std::vector<std::string> words_of(std::string_view value) {
  std::vector<std::string> words;
  const bool texts = value.starts_with("['") && value.ends_with("']");
  if (!texts) {
    words.emplace_back(without_class(flag_word(value)));
    return words;
  }
  value = value.substr(2, value.size() - 4);
  for (std::size_t end = value.find("', '"); end != std::string_view::npos;
       end = value.find("', '")) {
    words.emplace_back(value.substr(0, end));
    value.remove_prefix(end + 4);
  }
  words.emplace_back(value);
  return words;
}

}  // namespace

void MegatronLaunch::take_argument(const LoggedArgument& argument) {
  const Renamed* const other = renamed(argument.name);
  const bool off = argument.value == "False";
  const bool by_absence = other != nullptr && other->off;
  if (argument.value.empty() || argument.value == "None" || off != by_absence) {
    return;
  }
  Flag& flag = flags_[other != nullptr ? std::string(other->flag) : flag_name(argument.name)];
  flag.line = argument.line;
  flag.values.clear();
  if (argument.value != "True" && !by_absence) {
    for (std::string& word : words_of(argument.value)) {
      flag.values.push_back({std::move(word), argument.line});
    }
  }
}

MegatronLaunch MegatronLaunch::of_log(std::string_view text, const std::string& file) {
  const TrainingLog log = read_training_log(text, file);
  MegatronLaunch launch;
  launch.logged_ = true;
  launch.file_ = file;
  launch.line_ = log.line;
  launch.program_ = log.model;
  launch.warnings_ = log.warnings;
  launch.parameters_ = log.parameters;
  for (const auto& [name, argument] : asked_arguments(log, file, launch.warnings_)) {
    launch.take_argument(argument);
  }
  return launch;
}

}  // namespace lockstep
