#include "generator/megatron_args/shell_raw.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "generator/megatron_args/shell_lexer.h"
#include "generator/megatron_args/shell_variables.h"

namespace lockstep {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// Whether the text between braces is a range: 1..4, a..e, 0..8..2.
bool is_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    return false;
  }
  const std::string_view first = text.substr(0, dots);
  const std::string_view last = text.substr(dots + 2, text.find("..", dots + 2) - dots - 2);
  return (to_int(first) && to_int(last)) ||
         (first.size() == 1 && last.size() == 1 && is_shell_name(first) && is_shell_name(last));
}

}  // namespace

std::optional<std::string> shell_escaped_text(std::string_view raw) {
  static constexpr std::string_view kLetters = "ntr\\'\"?abefv",
                                    kMeant = "\n\t\r\\'\"?\a\b\x1b\f\v";
  std::string text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      text += raw[i];
    } else if (const std::size_t at = kLetters.find(raw[++i]); at != std::string_view::npos) {
      text += kMeant[at];
    } else if (is_octal(raw[i])) {
      int value = 0;
      const std::size_t end = std::min(i + 3, raw.size());
      for (; i < end && is_octal(raw[i]); ++i) {
        value = value * 8 + (raw[i] - '0');
      }
      --i;
      text += static_cast<char>(value);
    } else {
      return std::nullopt;
    }
  }
  std::ranges::replace_if(
      text, [](char c) { return c == ShellVariables::kMarkBegin || c == ShellVariables::kMarkEnd; },
      '?');
  return text;
}

bool has_shell_braces(std::string_view raw, const std::string& file, std::size_t line) {
  struct Brace {
    std::size_t begin;
    bool comma;
  };
  std::vector<Brace> open;
  bool quoted = false;
  for (std::size_t i = 0; i < raw.size();) {
    const char c = raw[i];
    if (c == '\\') {
      i += 2;
    } else if (c == '$' || c == '`') {
      i = skip_expansion(raw, i, file, line, quoted);
    } else if (c == '\'' && !quoted) {
      i = std::min(raw.find('\'', i + 1), raw.size() - 1) + 1;
    } else {
      quoted = c == '"' ? !quoted : quoted;
      if (c == '{' && !quoted) {
        open.push_back({i + 1, false});
      } else if (c == ',' && !quoted && !open.empty()) {
        open.back().comma = true;
      } else if (c == '}' && !quoted && !open.empty()) {
        const Brace brace = open.back();
        open.pop_back();
        if (brace.comma || is_range(raw.substr(brace.begin, i - brace.begin))) {
          return true;
        }
      }
      ++i;
    }
  }
  return false;
}

}  // namespace lockstep
