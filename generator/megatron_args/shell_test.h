#pragma once

#include <span>
#include <string>

#include "generator/megatron_args/shell_answer.h"
#include "generator/megatron_args/shell_lexer.h"
#include "generator/megatron_args/shell_variables.h"

namespace lockstep {

/// What `[ … ]` or `[[ … ]]` says, with the brackets left out: comparisons of texts and of numbers,
/// -z, -n, -v, !, ( ), && || -a -o. Other tests of one word look at files. `patterns`: what stands
/// right of = and != is a pattern, as in [[ ]]. ERRORS: those of expand_text().
ShellAnswer shell_test(std::span<const ShellToken> words, bool patterns, const std::string& file,
                       ShellVariables& variables);

}  // namespace lockstep
