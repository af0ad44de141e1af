#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/megatron_args/shell_lexer.h"

namespace lockstep {

/// The words of a command without its redirections, and the word of its here-string, <<< word.
struct ShellWords {
  std::vector<ShellToken> words;
  std::optional<ShellToken> here;
};

/// A place in the tokens of a script.
class ShellCursor {
 public:
  using Ends = std::initializer_list<std::string_view>;

  ShellCursor(std::vector<ShellToken> tokens, const std::string& file)
      : tokens_(std::move(tokens)), file_(file) {}

  bool at_end() const { return at_ >= tokens_.size(); }
  /// PRECONDITION: not at the end.
  const ShellToken& here() const { return tokens_[at_]; }
  std::size_t line() const { return tokens_.empty() ? 1 : tokens_[at_end() ? 0 : at_].line; }
  std::size_t at() const { return at_; }
  void go_to(std::size_t at) { at_ = at; }
  void next() { ++at_; }
  std::span<const ShellToken> between(std::size_t begin, std::size_t end) const {
    return std::span(tokens_).subspan(begin, end - begin);
  }

  bool at_any_word() const { return !at_end() && here().kind == ShellToken::Kind::kWord; }
  bool at_any_operator() const { return !at_end() && here().kind == ShellToken::Kind::kOperator; }
  bool at_word(std::string_view text) const { return at_any_word() && here().text == text; }
  bool at_operator(std::string_view text) const { return at_any_operator() && here().text == text; }
  bool at_redirection() const;
  bool at_one_of(Ends ends) const;
  /// NAME ( ) stands here.
  bool at_function() const;

  void skip_separators();
  /// A redirection and its file.
  void skip_redirection();
  /// ERRORS: another token stands here, or none: the `what` that begins at `line` has no `end`.
  void expect(std::string_view end, std::string_view what, std::size_t line);
  /// The command up to its end.
  ShellWords command();

 private:
  std::vector<ShellToken> tokens_;
  const std::string& file_;
  std::size_t at_ = 0;
};

}  // namespace lockstep
