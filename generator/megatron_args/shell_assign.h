#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "generator/megatron_args/shell_lexer.h"
#include "generator/megatron_args/shell_variables.h"

namespace lockstep {

/// What an assignment sets: NAME=value, NAME+=value, NAME=( … ), NAME[index]=value.
struct ShellTarget {
  std::string name;
  std::string_view index;  ///< as written; empty: none
  bool more = false;       ///< +=
  std::size_t value = 0;   ///< where the value begins in the token's text
};

/// Nothing if the token is no assignment. O(text).
std::optional<ShellTarget> shell_target(const ShellToken& token);

/// Does an assignment; no other token changes anything. ERRORS: those of expand_word().
void assign_shell(const ShellToken& token, const std::string& file, ShellVariables& variables);

/// An assignment that may or may not have been done: the value is not known; of NAME+=… and
/// NAME="$NAME …" what was there before stays.
void forget_shell(const ShellToken& token, ShellVariables& variables);

/// What a word that may or may not have been expanded sets, ${NAME:=…} and $((NAME++)): its values
/// are not known.
void forget_inside(std::string_view text, std::size_t line, ShellVariables& variables);

/// The values of all names in an arithmetic text are not known.
void forget_names(std::string text, std::size_t line, ShellVariables& variables);

}  // namespace lockstep
