#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"
#include "generator/megatron_args/shell_variables.h"

namespace lockstep {

/// A command that a script would run, its words expanded.
struct ShellCommand {
  std::vector<ShellWord> words;
  std::size_t line = 0;
  std::string slurm_tasks;  ///< $SLURM_NTASKS as the command has it; empty: not set
  std::string slurm_nodes;  ///< $SLURM_NNODES
};

/// The first Python program that a script starts where it is not read.
struct ShellLeftOut {
  std::size_t line = 0;  ///< 0: none
  std::string why;       ///< "nothing here calls the function around it"
};

/// What reading a script gives.
struct ShellScript {
  std::vector<ShellCommand> commands;  ///< in order; those inside `bash -c` and `eval` too
  ShellVariables variables;
  Warnings warnings;  ///< "train.sh:12: …"
  ShellLeftOut left_out;
};

/// Reads a shell script without running any of it: assignments (also of arrays and their elements,
/// with +=, export and declare), commands that set variables (run_shell_builtin()), if and case
/// where their conditions can be decided, && and ||, { … }, functions where they are called, `for`
/// over words that are known, `eval`, and the text after `bash -c` or `sh -c` (what stands before
/// it, a launcher, is put before its commands). NAME=value before a command holds for that command
/// alone, whose words do not see it; what ( … ) sets ends with it. Commands are taken to succeed. A
/// condition that depends on files counts as no. Where a condition depends on a program's output
/// all its branches are left out, and so is a loop that may run; what they set is not known. All
/// this is warned about. The script is taken to be run without arguments in an empty environment
/// but for `given`. #SBATCH lines set Slurm's variables.
///
/// O(text) for scripts whose variables, loops and calls do not multiply each other.
/// ERRORS: Error with file and line: quotes and brackets that are never closed, if, case or a loop
/// without its end; what expand_word() says; a text above 1 MiB.
ShellScript read_shell_script(std::string_view text, const std::string& file,
                              const ShellVariables& given = {});

}  // namespace lockstep
