#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"

namespace lockstep {

/// One line of the list of arguments in a training's log.
struct LoggedArgument {
  std::string name;   ///< as in Python: "tensor_model_parallel_size"
  std::string value;  ///< as Python prints it: "8", "True", "None", "['p2p']", "AttnBackend.auto"
  std::size_t line = 0;
};

/// What a log of Megatron-LM (or of a fork of it, such as Megatron-DeepSpeed) tells of its job
/// before training begins.
struct TrainingLog {
  std::size_t line = 0;  ///< of the list's head
  std::vector<LoggedArgument> arguments;
  std::optional<std::int64_t> vocabulary;  ///< of "padded vocab (size: N)": before it is padded
  std::string model;                       ///< of "building GPT model ..."; empty: not told
  /// Of "number of parameters on (tensor, pipeline) model parallel rank (0, S): N", by S.
  std::map<std::int64_t, std::int64_t> parameters;
  bool trained = false;  ///< iterations follow the list
  Warnings warnings;
};

/// Whether a text has the head of such a list.
bool is_training_log(std::string_view text);

/// Reads the list that Megatron-LM prints (arguments.py, _print_args) when it starts,
///
///     ------------------------ arguments ------------------------
///       accumulate_allreduce_grads_in_fp32 .............. True
///     …
///     -------------------- end of arguments ---------------------
///
/// each name filled up with dots to 48 characters, whatever a launcher writes before a line, other
/// ranks between two, and a terminal is told of colours; and what the lines behind it tell. Of
/// several lists, as a job that was started again has in one log, the last counts that iterations
/// follow; where none does, the last that is whole. O(text).
///
/// ERRORS: with file and line: no list is whole, or the one that iterations follow is not; it has
/// no tensor parallelism, as every release has. PRECONDITION: is_training_log(text).
TrainingLog read_training_log(std::string_view text, const std::string& file);

}  // namespace lockstep
