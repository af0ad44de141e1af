#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/warnings.h"
#include "generator/megatron_args/shell_answer.h"
#include "generator/megatron_args/shell_lexer.h"
#include "generator/megatron_args/shell_variables.h"

namespace lockstep {

/// Does a command of the shell itself that sets variables: read (of a here-string), set, shift,
/// unset. What mapfile, readarray, printf -v, getopts, and read from elsewhere set is not known;
/// getopts finds nothing where there are no arguments. `here` is the word after <<<, or nullptr.
/// `certain`: it runs for certain; otherwise nothing that it sets is known.
///
/// Nothing is returned, and done, for any other command. ERRORS: those of expand_word().
std::optional<ShellAnswer> run_shell_builtin(std::span<const ShellToken> words,
                                             const ShellToken* here, bool certain,
                                             const std::string& file, ShellVariables& variables,
                                             Warnings& warnings);

}  // namespace lockstep
