#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// What stands between the quotes of $'…'; nothing where it has letters that we do not know.
std::optional<std::string> shell_escaped_text(std::string_view raw);

/// Whether a word as it is written holds {a,b} or {1..4}, so that it is several words. O(word).
/// ERRORS: as lex_shell().
bool has_shell_braces(std::string_view raw, const std::string& file, std::size_t line);

}  // namespace lockstep
