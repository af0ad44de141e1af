#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "generator/megatron_args/shell_lexer.h"
#include "generator/megatron_args/shell_variables.h"

namespace lockstep {

/// What `[ … ]`, `[[ … ]]` or `test …` says, with the brackets left out: comparisons of texts and
/// of numbers, -z, -n, !, ( ), && || -a -o. Nothing where that depends on a file, a command's
/// output or a pattern we do not know. ERRORS: those of expand_text().
std::optional<bool> shell_test(std::span<const ShellToken> words, const std::string& file,
                               ShellVariables& variables);

/// Whether `text` matches a shell pattern of letters, * and ?. O(text x pattern).
bool shell_matches(std::string_view text, std::string_view pattern);

}  // namespace lockstep
