#include "generator/megatron_args/shell_change.h"

#include <fmt/format.h>

#include "base/text.h"
#include "generator/megatron_args/shell_lexer.h"

namespace lockstep {

bool changes_shell_variable(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : ' '; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], before = i > 0 ? text[i - 1] : ' ', next = at(i + 1);
    const bool compares =
        next == '=' || std::string_view("=!<>").find(before) != std::string_view::npos;
    const bool shifts =
        c == '=' && i > 1 && (before == '<' || before == '>') && text[i - 2] == before;
    if (shifts || (c == '=' && !compares) || ((c == '+' || c == '-') && next == c)) {
      return true;
    }
  }
  return false;
}

std::optional<ShellChange> shell_change(std::string_view text) {
  text = trim(text);
  std::string_view value, op;
  if (text.ends_with("++") || text.ends_with("--")) {
    op = text.substr(text.size() - 1);
    text.remove_suffix(2);
    value = "1";
  } else if (text.starts_with("++") || text.starts_with("--")) {
    op = text.substr(0, 1);
    text.remove_prefix(2);
    value = "1";
  } else if (const std::size_t equals = text.find('='); equals != std::string_view::npos) {
    value = text.substr(equals + 1);
    text = text.substr(0, equals);
    if (!text.empty() && std::string_view("+-*/%").find(text.back()) != std::string_view::npos) {
      op = text.substr(text.size() - 1);
      text.remove_suffix(1);
    }
  }
  const std::string name(trim(text));
  if (!is_shell_name(name) || value.empty() || value.starts_with('=') ||
      changes_shell_variable(value) || value.find(',') != std::string_view::npos) {
    return std::nullopt;
  }
  return ShellChange{name, op.empty() ? fmt::format("$(({}))", value)
                                      : fmt::format("$((${{{}:-0}} {} ({})))", name, op, value)};
}

}  // namespace lockstep
