#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// An arithmetic command that gives a variable a value.
struct ShellChange {
  std::string name;
  std::string value;  ///< to be expanded: "$((${N:-0} + (1)))"
};

/// Whether an arithmetic text holds =, += and the like, ++ or --. O(text).
bool changes_shell_variable(std::string_view text);

/// One of NAME=…, NAME+=… (also - * / %), NAME++, ++NAME, NAME--, --NAME, as (( … )) and let have
/// it; nothing for anything else. O(text).
std::optional<ShellChange> shell_change(std::string_view text);

}  // namespace lockstep
