#include "generator/megatron_args/shell_cursor.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

bool ShellCursor::at_redirection() const {
  return at_any_operator() && here().text.find_first_of("<>") != std::string::npos;
}

bool ShellCursor::at_one_of(Ends ends) const {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return at_word(end) || at_operator(end); });
}

bool ShellCursor::at_function() const {
  const auto is = [&](std::size_t i, std::string_view text) {
    return i < tokens_.size() && tokens_[i].kind == ShellToken::Kind::kOperator &&
           tokens_[i].text == text;
  };
  return is(at_ + 1, "(") && is(at_ + 2, ")");
}

void ShellCursor::skip_separators() {
  while (at_operator(";")) {
    ++at_;
  }
}

void ShellCursor::skip_redirection() {
  ++at_;
  at_ += at_any_word() ? 1U : 0U;
}

void ShellCursor::expect(std::string_view end, std::string_view what, std::size_t line) {
  if (!at_word(end) && !at_operator(end)) {
    throw Error(fmt::format("the '{}' that begins here has no '{}'", what, end)).at(file_, line);
  }
  ++at_;
}

ShellWords ShellCursor::command() {
  ShellWords found;
  while (!at_end()) {
    if (at_redirection()) {
      const bool string = at_operator("<<<");
      skip_redirection();
      if (string) {
        found.here = tokens_[at_ - 1];
      }
    } else if (at_any_operator()) {
      break;
    } else {
      found.words.push_back(here());
      ++at_;
    }
  }
  return found;
}

}  // namespace lockstep
