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
};

/// What reading a script gives.
struct ShellScript {
  std::vector<ShellCommand> commands;  ///< in order; those inside `bash -c` and `eval` too
  ShellVariables variables;
  Warnings warnings;  ///< "train.sh:12: …"
};

/// Reads a shell script without running any of it: assignments (also of arrays, with +=, export and
/// declare), if and case where their conditions can be decided, && and ||, { … }, `eval`, and the
/// text after `bash -c` or `sh -c` (what stands before it, a launcher, is put before its commands).
/// NAME=value before a command holds for that command alone, whose words do not see it; what ( … )
/// sets ends with it. Commands are taken to succeed. A branch whose condition depends on files, a
/// loop and a function's body are left out, with a warning; where a condition depends on a
/// program's output all its branches are, and what they set is not known. The script is taken to be
/// run without arguments in an empty environment but for `given`. #SBATCH lines set Slurm's
/// variables.
///
/// O(text) for scripts whose variables do not multiply each other.
/// ERRORS: Error with file and line: quotes and brackets that are never closed, if, case or a loop
/// without its end; what expand_word() says; a text above 1 MiB.
ShellScript read_shell_script(std::string_view text, const std::string& file,
                              const ShellVariables& given = {});

}  // namespace lockstep
