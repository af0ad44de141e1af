#pragma once

#include <span>
#include <string>
#include <string_view>

#include "generator/argparse.h"

namespace lockstep {

/// Which of AICB's scripts a preset comes from: the one that writes SimAI's text, the one that
/// writes or runs Megatron's CSV, the one for DeepSpeed's llama models.
enum class PresetFamily { kSimai, kMegatron, kDeepSpeed };

/// A model of AICB's scripts.
struct Preset {
  std::string_view name;        ///< ours, for --model: "gpt-7b"
  std::string_view script_key;  ///< theirs, for -m: "7"
  std::string_view values;      ///< "flag=value" and switches, separated by blanks
  std::string_view simai;       ///< further values in the SimAI script
  std::string_view megatron;    ///< further values in the Megatron script
  bool in_simai_script = true;  ///< the SimAI script knows it
};
std::span<const Preset> presets();            ///< Megatron's and DeepSeek's
std::span<const Preset> deepspeed_presets();  ///< llama's

/// If `flags` has --model: the preset's values, then the defaults of the script, wherever the user
/// gave none. ERRORS: no such model, with the nearest.
void apply_preset(ArgValues& flags, PresetFamily family);

enum class Over { kKeepGiven, kReplace };

/// Sets "flag=value" words and switches, separated by blanks.
void set_all(ArgValues& flags, std::string_view values, Over over);

/// By our name or the script's key, in any case; nullptr if there is none.
const Preset* find_preset(std::span<const Preset> list, std::string_view name);

/// The values of a script for what neither its user nor a preset gave.
std::string_view script_defaults(PresetFamily family);

}  // namespace lockstep
