#include "generator/megatron_args/shell_lexer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr int kMaxDepth = 64;

Error unclosed(std::string_view what, std::string_view close, const std::string& file,
               std::size_t line) {
  return Error("the " + std::string(what) + " that begins here is never closed")
      .at(file, line)
      .expected(close);
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_operator(char c) { return std::string_view(";&|()<>\n").find(c) != std::string_view::npos; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

/// `quoted`: inside double quotes, where ' is a letter like any other.
std::size_t skip_expansion_at(std::string_view text, std::size_t begin, const std::string& file,
                              std::size_t& line, int depth, bool quoted = false);

std::size_t skip_quoted_at(std::string_view text, std::size_t begin, const std::string& file,
                           std::size_t& line, int depth) {
  const char quote = text[begin];
  const std::size_t first = line;
  for (std::size_t i = begin + 1; i < text.size();) {
    const char c = text[i];
    if (c == quote) {
      return i + 1;
    }
    line += c == '\n' ? 1U : 0U;
    if (quote == '"' && c == '\\' && i + 1 < text.size()) {
      line += text[i + 1] == '\n' ? 1U : 0U;
      i += 2;
    } else if (quote == '"' && (c == '$' || c == '`')) {
      i = skip_expansion_at(text, i, file, line, depth + 1, true);
    } else {
      ++i;
    }
  }
  throw unclosed("quote", std::string(1, quote), file, first);
}

/// Behind the bodies of here-documents that end with the lines `ends`; the first begins at `at`.
std::size_t skip_bodies(std::string_view text, std::size_t at, std::vector<std::string>& ends,
                        std::size_t& line) {
  for (const std::string& end : ends) {
    while (at < text.size()) {
      const std::size_t stop = std::min(text.find('\n', at), text.size());
      std::string_view body = text.substr(at, stop - at);
      at = std::min(stop + 1, text.size());
      ++line;
      while (!body.empty() && is_blank(body.front())) {
        body.remove_prefix(1);
      }
      if (body == end) {
        break;
      }
    }
  }
  ends.clear();
  return at;
}

std::string without_quotes(std::string text) {
  std::erase_if(text, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
  return text;
}

/// Behind the "<<" or "<<-" at text[at] and the word that ends its here-document, which goes to
/// `ends`; behind "<<<" where that stands there.
std::size_t skip_here_word(std::string_view text, std::size_t at, std::vector<std::string>& ends) {
  at += 2;
  if (at < text.size() && text[at] == '<') {
    return at + 1;
  }
  at += at < text.size() && text[at] == '-' ? 1U : 0U;
  while (at < text.size() && is_blank(text[at])) {
    ++at;
  }
  const std::size_t begin = at;
  while (at < text.size() && !is_blank(text[at]) && !is_operator(text[at])) {
    ++at;
  }
  if (at > begin) {
    ends.push_back(without_quotes(std::string(text.substr(begin, at - begin))));
  }
  return at;
}

/// Whether a command begins at text[at], inside of the bracket that opens at text[begin].
bool command_begins_at(std::string_view text, std::size_t begin, std::size_t at) {
  static constexpr auto kBefore = std::to_array<std::string_view>(
      {"then", "do", "else", "elif", "if", "while", "until", "{", "!"});
  while (at > begin && is_blank(text[at - 1])) {
    --at;
  }
  const char last = at > begin ? text[at - 1] : '(';
  const std::string_view before = text.substr(begin, at - begin);
  return is_operator(last) || std::ranges::any_of(kBefore, [&](std::string_view word) {
           return before.ends_with(word) && before.size() > word.size() &&
                  (is_blank(before[before.size() - word.size() - 1]) ||
                   is_operator(before[before.size() - word.size() - 1]));
         });
}

bool word_stands_at(std::string_view text, std::size_t at, std::string_view word) {
  const std::string_view rest = text.substr(at);
  return rest.starts_with(word) && (rest.size() == word.size() || is_blank(rest[word.size()]) ||
                                    is_operator(rest[word.size()]));
}

/// Behind the `close` that matches the `open` at text[begin]. Between ( ) stand commands, with
/// comments and here-documents, but not between (( )).
std::size_t skip_bracket(std::string_view text, std::size_t begin, char open, char close,
                         const std::string& file, std::size_t& line, int depth,
                         bool quoted = false) {
  const std::size_t first = line;
  const bool commands = open == '(' && !text.substr(begin).starts_with("((");
  std::vector<std::string> ends;
  std::vector<int> cases;  // the levels of each case … esac: their patterns close no bracket
  int level = 0;
  for (std::size_t i = begin; i < text.size();) {
    const char c = text[i];
    if (commands && (word_stands_at(text, i, "case") || word_stands_at(text, i, "esac")) &&
        command_begins_at(text, begin, i)) {
      if (c == 'c') {
        cases.push_back(level);
      } else if (!cases.empty()) {
        cases.pop_back();
      }
      i += 4;
      continue;
    }
    if (c == ')' && !cases.empty() && cases.back() == level) {
      ++i;
      continue;
    }
    if (c == '"' || (c == '\'' && !quoted)) {
      i = skip_quoted_at(text, i, file, line, depth + 1);
      continue;
    }
    if (c == '`' || (c == '$' && i + 1 < text.size() && text[i + 1] != open)) {
      i = skip_expansion_at(text, i, file, line, depth + 1, quoted);
      continue;
    }
    if (c == '\\' && i + 1 < text.size()) {
      line += text[i + 1] == '\n' ? 1U : 0U;
      i += 2;
      continue;
    }
    if (commands && c == '#' && (is_blank(text[i - 1]) || text[i - 1] == '\n')) {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (commands && text.substr(i).starts_with("<<")) {
      i = skip_here_word(text, i, ends);
      continue;
    }
    line += c == '\n' ? 1U : 0U;
    level += c == open ? 1 : c == close ? -1 : 0;
    ++i;
    if (c == '\n') {
      i = skip_bodies(text, i, ends, line);
    }
    if (level == 0) {
      return i;
    }
  }
  throw unclosed("bracket", std::string(1, close), file, first);
}

/// Behind the quotes of $'…' at text[begin], where \ keeps a quote from closing.
std::size_t skip_escaped(std::string_view text, std::size_t begin, const std::string& file,
                         std::size_t& line) {
  const std::size_t first = line;
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\'') {
      return i + 1;
    }
    i += text[i] == '\\' && i + 1 < text.size() ? 1U : 0U;
    line += text[i] == '\n' ? 1U : 0U;
  }
  throw unclosed("quote", "'", file, first);
}

std::size_t skip_expansion_at(std::string_view text, std::size_t begin, const std::string& file,
                              std::size_t& line, int depth, bool quoted) {
  if (depth > kMaxDepth) {
    throw Error("quotes and substitutions are nested too deeply").at(file, line);
  }
  if (text[begin] == '`') {
    const std::size_t first = line;
    for (std::size_t i = begin + 1; i < text.size(); ++i) {
      line += text[i] == '\n' ? 1U : 0U;
      if (text[i] == '\\' && i + 1 < text.size()) {
        line += text[++i] == '\n' ? 1U : 0U;
      } else if (text[i] == '`') {
        return i + 1;
      }
    }
    throw unclosed("backquote", "`", file, first);
  }
  const std::size_t next = begin + 1;
  if (next >= text.size()) {
    return next;
  }
  if (text[next] == '(') {
    return skip_bracket(text, next, '(', ')', file, line, depth);
  }
  if (text[next] == '{') {
    return skip_bracket(text, next, '{', '}', file, line, depth, quoted);
  }
  if (text[next] == '\'' && !quoted) {  // $'…'
    return skip_escaped(text, next, file, line);
  }
  if (!is_name_start(text[next])) {  // $1, $@, $?, or a dollar alone
    const bool special =
        std::string_view("0123456789@*#?$!-").find(text[next]) != std::string_view::npos;
    return special ? next + 1 : next;
  }
  std::size_t end = next;
  while (end < text.size() && is_name_char(text[end])) {
    ++end;
  }
  return end;
}

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file, std::size_t line)
      : text_(text), file_(file), line_(line) {}

  std::vector<ShellToken> all() {
    while (skip_blanks(), at_ < text_.size()) {
      next();
    }
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  /// Blanks, continued lines and, where a word could begin, comments.
  void skip_blanks() {
    for (;;) {
      if (at_ < text_.size() && is_blank(text_[at_])) {
        ++at_;
      } else if (starts("\\\n") || starts("\\\r\n")) {
        at_ = text_.find('\n', at_) + 1;
        ++line_;
      } else if (at_ < text_.size() && text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  bool command_begins() const {
    static constexpr auto kBefore = std::to_array<std::string_view>(
        {"if", "elif", "while", "until", "then", "else", "do", "{", "!", "for", "time"});
    if (tokens_.empty()) {
      return true;
    }
    const std::string& last = tokens_.back().text;
    return tokens_.back().kind == ShellToken::Kind::kOperator
               ? last != ">" && last != "<"
               : std::find(kBefore.begin(), kBefore.end(), last) != kBefore.end();
  }

  void next() {
    if (starts("((") && command_begins()) {
      const std::size_t line = line_, begin = at_;
      at_ = skip_bracket(text_, at_, '(', ')', file_, line_, 0);
      tokens_.push_back(
          {ShellToken::Kind::kWord, std::string(text_.substr(begin, at_ - begin)), line, {}});
    } else if (is_operator(text_[at_])) {
      take_operator();
    } else {
      tokens_.push_back(word());
      if (at_ < text_.size() && text_[at_] == '(' && opens_array(tokens_.back().text)) {
        take_elements(tokens_.back());
      }
      if (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>') &&
          tokens_.back().text.find_first_not_of("0123456789") == std::string::npos) {
        tokens_.pop_back();  // the 2 of 2>file
      }
    }
  }

  static bool opens_array(std::string_view word) {
    if (!word.ends_with('=')) {
      return false;
    }
    word.remove_suffix(word.ends_with("+=") ? 2 : 1);
    return is_shell_name(word);
  }

  void take_elements(ShellToken& array) {
    array.kind = ShellToken::Kind::kArray;
    ++at_;
    for (;;) {
      skip_blanks();
      if (at_ >= text_.size()) {
        throw unclosed("array", ")", file_, array.line);
      }
      if (text_[at_] == ')') {
        ++at_;
        return;
      }
      if (text_[at_] == '\n') {
        ++at_;
        ++line_;
      } else if (is_operator(text_[at_])) {
        throw Error(std::string("'") + text_[at_] + "' cannot stand in an array")
            .at(file_, line_)
            .expected("words, then ')'");
      } else {
        array.elements.push_back(word());
      }
    }
  }

  ShellToken word() {
    ShellToken token;
    token.line = line_;
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) && !is_operator(text_[at_])) {
      const char c = text_[at_];
      if (c == '\'' || c == '"') {
        at_ = skip_quoted_at(text_, at_, file_, line_, 0);
      } else if (c == '$' || c == '`') {
        at_ = skip_expansion_at(text_, at_, file_, line_, 0);
      } else if (c == '\\') {
        line_ += starts("\\\n") ? 1U : 0U;
        at_ = std::min(at_ + 2, text_.size());
      } else {
        ++at_;
      }
    }
    token.text = text_.substr(begin, at_ - begin);
    return token;
  }

  void take_operator() {
    static constexpr auto kOperators = std::to_array<std::string_view>(
        {";;&", "<<<", "<<-", "&>>", "<<", "&&", "||", ";;", ";&", "|&", "&>", ">>",
         ">&",  "<&",  ">|",  ";",   "&",  "|",  "(",  ")",  "<",  ">",  "\n"});
    const std::size_t line = line_;
    for (const std::string_view each : kOperators) {
      if (!starts(each)) {
        continue;
      }
      at_ += each.size();
      if (each == "<<" || each == "<<-") {
        skip_blanks();
        if (at_ < text_.size() && !is_operator(text_[at_])) {
          ends_.push_back(without_quotes(word().text));
        }
        return;
      }
      tokens_.push_back({ShellToken::Kind::kOperator, std::string(each), line, {}});
      if (each == "\n") {
        tokens_.back().text = ";";
        ++line_;
        at_ = skip_bodies(text_, at_, ends_, line_);
      }
      return;
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t line_;
  std::size_t at_ = 0;
  std::vector<ShellToken> tokens_;
  std::vector<std::string> ends_;  ///< of here-documents that begin on this line
};

}  // namespace

bool is_shell_name(std::string_view text) {
  return !text.empty() && is_name_start(text.front()) &&
         std::all_of(text.begin(), text.end(), is_name_char);
}

std::size_t skip_expansion(std::string_view text, std::size_t begin, const std::string& file,
                           std::size_t& line, bool quoted) {
  return skip_expansion_at(text, begin, file, line, 0, quoted);
}

std::vector<ShellToken> lex_shell(std::string_view text, const std::string& file,
                                  std::size_t first_line) {
  return Lexer(text, file, first_line).all();
}

}  // namespace lockstep
