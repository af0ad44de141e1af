#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/megatron_args/shell_variables.h"

namespace lockstep {

/// The words that a word of a script becomes: quotes removed, variables put in, what is not quoted
/// cut at blanks, or at $IFS. Understood are $NAME, ${NAME}, ${NAME:-word} and the like (- = + ?,
/// with or without ':'), ${NAME[@]}, ${NAME[number]}, ${#NAME}, ${#NAME[@]}, $(( … )). Nothing is
/// run: a command's output, and what edits a value (${NAME%…} …), become markers, as do variables
/// and arguments of the script that are not set. File name patterns stay as they are.
///
/// ERRORS: Error with file and line: a bad expression; more than 32 expansions inside each other;
/// more text than `variables.budget`.
std::vector<ShellWord> expand_word(std::string_view raw, std::size_t line, const std::string& file,
                                   ShellVariables& variables);

/// The same as one text, as in an assignment: nothing is cut.
std::string expand_text(std::string_view raw, std::size_t line, const std::string& file,
                        ShellVariables& variables);

/// The same as a pattern: a \ stands before letters that were quoted.
std::string expand_pattern(std::string_view raw, std::size_t line, const std::string& file,
                           ShellVariables& variables);

/// The value of an arithmetic text, and what it sets; nothing if it is not known. ERRORS: those of
/// shell_arithmetic().
std::optional<std::int64_t> shell_number(std::string_view text, std::size_t line,
                                         const std::string& file, ShellVariables& variables);

/// The number of the element that the index `raw` names; nothing: it is not known, or a key.
std::optional<std::int64_t> shell_index(std::string_view raw, std::size_t line,
                                        const std::string& file, ShellVariables& variables);

}  // namespace lockstep
