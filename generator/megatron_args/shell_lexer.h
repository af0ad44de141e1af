#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A piece of a shell script: a word with its quotes and dollars as written, an operator (";",
/// "&&", "(", ">", …; a newline is ";"), or the assignment of an array, NAME=( … ).
struct ShellToken {
  enum class Kind : std::uint8_t { kWord, kOperator, kArray };
  Kind kind = Kind::kWord;
  std::string text;  ///< kArray: "NAME=" or "NAME+="
  std::size_t line = 0;
  std::vector<ShellToken> elements;  ///< of an array: words
};

/// Cuts a script into tokens as a POSIX shell (and bash, for arrays, [[ ]] and (( ))) does.
/// Comments, line continuations and the bodies of here-documents are left out. "((…))" where a
/// command begins is one word. Nothing is expanded. `first_line` is the number of the first line.
/// O(text).
///
/// ERRORS: Error with file and line: a quote, bracket, array or substitution that is never closed;
/// substitutions nested deeper than 64.
std::vector<ShellToken> lex_shell(std::string_view text, const std::string& file,
                                  std::size_t first_line = 1);

/// Where the expansion that begins with the '$' or '`' at text[begin] ends: "$NAME", "${…}",
/// "$(…)", "$((…))", "`…`", and $'…' where it is not `quoted`, inside of ". `line` is advanced over
/// the lines it spans. ERRORS: as lex_shell().
std::size_t skip_expansion(std::string_view text, std::size_t begin, const std::string& file,
                           std::size_t& line, bool quoted = false);

bool is_shell_name(std::string_view text);  ///< letters, digits and _, no digit first

}  // namespace lockstep
