#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Without blanks (space, tab, CR, LF, FF, VT) at both ends.
std::string_view trim(std::string_view text);

/// The words between blanks; no empty ones.
std::vector<std::string_view> split_blanks(std::string_view text);

/// The fields between separators, empty ones included; an empty text is one empty field.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The whole text as a number, or nothing. No blanks, no trailing characters, no locale; a leading
/// '+' is allowed. to_double refuses nan and inf.
std::optional<std::int64_t> to_int(std::string_view text);
std::optional<double> to_double(std::string_view text);

std::string join(std::span<const std::string_view> parts, std::string_view separator);
std::string to_lower(std::string_view text);
/// A flag's name as argparse has it: "global-batch" as "global_batch".
std::string with_underscores(std::string_view name);

/// The candidate nearest to `word` by edit distance, if near enough to be a slip of the finger
/// (at most a third of its letters, two swapped neighbours counted as one); else the only one that
/// begins with it, from three letters on; else empty. Case is ignored.
std::string_view closest(std::string_view word, std::span<const std::string_view> candidates);

bool is_utf8(std::string_view text);
/// ERRORS: Error naming the file and the line of the first byte that is no UTF-8.
void require_utf8(std::string_view text, const std::string& file);

/// A user's text fit for a message: controls, non-UTF-8 as "\xNN", cut at `limit` bytes with "…".
std::string printable(std::string_view text, std::size_t limit = 80);
/// The same for a message of several lines, which may quote inputs: a terminal would obey their
/// control characters. Not cut.
std::string printable_lines(std::string_view text);

/// The text without escape sequences of terminals (ECMA-48, "ESC [ … letter").
std::string without_colours(std::string_view text);

}  // namespace lockstep
