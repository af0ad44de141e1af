#pragma once

#include <span>
#include <string>

#include "generator/megatron_args/shell_answer.h"
#include "generator/megatron_args/shell_lexer.h"
#include "generator/megatron_args/shell_variables.h"

namespace lockstep {

/// What `[ … ]` or, if it `is_long`, `[[ … ]]` says, with the brackets left out: comparisons of
/// texts (in [[ ]] with patterns) and of numbers (in [[ ]] of all arithmetic), -z, -n, -v, !, ( ),
/// && || or -a -o. Other tests of one word look at files. ERRORS: those of expand_text().
ShellAnswer shell_test(std::span<const ShellToken> words, bool is_long, const std::string& file,
                       ShellVariables& variables);

}  // namespace lockstep
