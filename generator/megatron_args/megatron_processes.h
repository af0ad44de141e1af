#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/megatron_args/shell_variables.h"

namespace lockstep {

/// What stands before the program that a command starts, and what Slurm tells the command.
struct MegatronLauncher {
  std::vector<ShellWord> words;
  std::string slurm_tasks, slurm_nodes;  ///< as ShellCommand has them
  std::size_t line = 0;
};

/// Processes that a launcher starts: torchrun's nodes times processes a node, or what mpirun, srun
/// or deepspeed is told; srun without nodes takes those of the job. Options of programs behind a
/// launcher (nice -n, conda run -n) are not its own. Nothing if nobody says. ERRORS: with file and
/// line: a value that is not known, no number of 1 or more.
std::optional<std::int64_t> launched_processes(const MegatronLauncher& launcher,
                                               const std::string& file,
                                               const ShellVariables& variables);

/// The text of a word. ERRORS: with file, line and `field`: it is not known; `instead` is the flag
/// of ours that replaces it, for the hint.
std::string known_word(const ShellWord& word, std::string_view field, std::string_view instead,
                       const std::string& file, const ShellVariables& variables);

/// A flag's name without '-' at its front, and with '-' for '_'.
std::string flag_name(std::string_view word);

}  // namespace lockstep
