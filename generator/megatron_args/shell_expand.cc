#include "generator/megatron_args/shell_expand.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_arithmetic.h"
#include "generator/megatron_args/shell_assign.h"
#include "generator/megatron_args/shell_lexer.h"
#include "generator/megatron_args/shell_raw.h"

namespace lockstep {
namespace {

constexpr int kMaxDepth = 32;

/// What bash sets itself.
constexpr auto kOwn = std::to_array<std::string_view>(
    {"BASH",     "BASHPID",  "BASH_SOURCE", "BASH_VERSION", "BASH_VERSINFO", "EPOCHSECONDS", "EUID",
     "FUNCNAME", "HOSTNAME", "HOSTTYPE",    "LINENO",       "MACHTYPE",      "OSTYPE",       "PPID",
     "PWD",      "RANDOM",   "SECONDS",     "SHELLOPTS",    "SHLVL",         "UID"});

/// What an expansion gives: one text, or the elements of an array.
struct Expansion {
  std::vector<ShellWord> items;
  bool list = false;   ///< "${A[@]}": quoted, a word for each item
  bool whole = false;  ///< the items are words already
};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
class Expander {
 public:
  Expander(const std::string& file, ShellVariables& variables, bool pattern = false)
      : file_(file), variables_(variables), pattern_(pattern) {}

  /// `cut`: at blanks that are not quoted. `quoted`: it stands inside of quotes.
  std::vector<ShellWord> run(std::string_view raw, std::size_t line, bool cut,
                             bool quoted = false) {
    if (++depth_ > kMaxDepth) {
      throw Error("expansions stand inside each other too deeply").at(file_, line);
    }
    const bool outer = std::exchange(cut_, cut);
    std::vector<ShellWord> words;
    bool open = false;  // the last of `words` still grows
    bool empty_list = false;
    const auto add = [&](std::string_view text, std::size_t at, bool loose = false) {
      variables_.spend(text.size() + 1, file_, line);
      if (!open) {
        words.push_back({"", at});
        open = true;
      }
      words.back().text += text;
      words.back().loose = words.back().loose || loose;
    };
    std::size_t i = 0;
    while (i < raw.size()) {
      const char c = raw[i];
      if (c == '"') {
        quoted = !quoted;
        add("", line);
        ++i;
      } else if (c == '\'' && !quoted) {
        const std::size_t end = std::min(raw.find('\'', i + 1), raw.size());
        add(literal(raw.substr(i + 1, end - i - 1)), line);
        i = std::min(end + 1, raw.size());
      } else if (c == '\\' && i + 1 < raw.size()) {
        const bool kept =
            quoted && std::string_view("$`\"\\\n").find(raw[i + 1]) == std::string_view::npos;
        if (raw[i + 1] != '\n') {
          add(literal(raw.substr(kept ? i : i + 1, kept ? 2 : 1)), line);
        }
        i += 2;
      } else if (c == '$' || c == '`') {
        std::size_t ignored = line;
        const std::size_t end = skip_expansion(raw, i, file_, ignored, quoted);
        if (end == i + 1) {  // a dollar alone; before a quote: $"…"
          if (end == raw.size() || raw[end] != '"' || quoted) {
            add("$", line);
          }
        } else if (raw[i + 1] == '\'') {
          const std::string_view inside = raw.substr(i + 2, end - i - 3);
          const std::optional<std::string> text = shell_escaped_text(inside);
          add(text ? literal(*text) : unknown(false, raw.substr(i, end - i), line).items[0].text,
              line);
        } else {
          const Expansion found = expansion(raw.substr(i, end - i), line, quoted);
          empty_list = empty_list || found.items.empty();
          put(found, quoted, line, add, open);
        }
        i = end;
      } else if (cut && !quoted && depth_ > 1 && separates(c)) {  // of ${NAME:-word word}
        split(raw.substr(i, 1), line, add, open);
        ++i;
      } else {
        add(quoted ? literal(raw.substr(i, 1)) : std::string(1, c), line,
            c == ShellVariables::kMarkBegin && !quoted);
        ++i;
      }
    }
    --depth_;
    cut_ = outer;
    if (empty_list && words.size() == 1 && words.front().text.empty()) {
      words.clear();  // "${A[@]}" of an empty array is no word
    }
    return words;
  }

 private:
  /// What was quoted: in a pattern none of its letters means more than itself.
  std::string literal(std::string_view text) const {
    std::string kept;
    for (const char c : text) {
      if (pattern_ && std::string_view("*?[]\\!^-@+()|").find(c) != std::string_view::npos) {
        kept += '\\';
      }
      kept += c;
    }
    return kept;
  }

  template <class Add>
  void put(const Expansion& expansion, bool quoted, std::size_t line, const Add& add, bool& open) {
    for (std::size_t k = 0; k < expansion.items.size(); ++k) {
      const ShellWord& item = expansion.items[k];
      const std::size_t at = expansion.list ? item.line : line;
      if (k > 0) {
        open = false;
      }
      if (expansion.whole) {
        add(item.text, at, item.loose);
      } else if (quoted || !cut_) {
        add(quoted ? literal(item.text) : item.text, at, expansion.list && item.loose);
      } else {
        split(item.text, at, add, open);
      }
    }
  }

  bool separates(char c) const {
    const std::optional<std::string> separators = variables_.separators();
    return !separators || separators->find(c) != std::string::npos;
  }

  /// Cuts a text at $IFS: at its blanks together, at each of its other letters.
  template <class Add>
  void split(std::string_view text, std::size_t at, const Add& add, bool& open) {
    const std::optional<std::string> separators = variables_.separators();
    if (!separators) {
      add(text.empty() ? "" : variables_.mark({.what = "$IFS", .line = at}), at, true);
      return;
    }
    bool after_blank = false;  // behind a word that a blank has ended
    std::size_t i = 0;
    while (i < text.size()) {
      std::size_t end = i;
      while (end < text.size() && separators->find(text[end]) == std::string::npos) {
        end = text[end] == ShellVariables::kMarkBegin ? text.find(ShellVariables::kMarkEnd, end)
                                                      : end;
        ++end;
      }
      if (end > i) {
        const std::string_view piece = text.substr(i, end - i);
        add(piece, at, piece.find(ShellVariables::kMarkBegin) != std::string_view::npos);
        after_blank = false;
        i = end;
        continue;
      }
      if (is_blank(text[i])) {
        after_blank = after_blank || open;
      } else {
        if (!open && !after_blank) {
          add("", at);
        }
        after_blank = false;
      }
      open = false;
      ++i;
    }
  }

  static Expansion one(std::string text, std::size_t line) {
    return {{{std::move(text), line}}, false};
  }
  Expansion unknown(bool unset, std::string_view raw, std::size_t line, std::int64_t words = 0) {
    return one(variables_.mark({unset, printable(raw, 60), line, words}), line);
  }

  /// Part of a list, or its keys: any number of words, quoted too.
  Expansion unknown_list(std::string_view raw, std::size_t line) {
    Expansion words = unknown(false, raw, line);
    words.items.front().loose = true;
    words.list = true;
    return words;
  }

  /// How many names $(scontrol show hostnames) of the job's own nodes gives; 0: it is no such
  /// command.
  std::int64_t nodes_listed(std::string_view raw) const {
    raw.remove_prefix(raw.starts_with("$(") ? 2 : 1);
    std::string command(raw.substr(0, raw.size() - 1));
    std::erase_if(command,
                  [](char c) { return std::string_view("\"{}").find(c) != std::string::npos; });
    const std::vector<std::string_view> words = split_blanks(command);
    const auto nodes = variables_.values.find("SLURM_NNODES");
    const bool lists = (words.size() == 3 || words.size() == 4) && words[0] == "scontrol" &&
                       words[1] == "show" && (words[2] == "hostnames" || words[2] == "hostname");
    const bool own = lists && (words.size() == 3 || words[3] == "$SLURM_JOB_NODELIST" ||
                               words[3] == "$SLURM_NODELIST");
    return own && nodes != variables_.values.end() && !nodes->second.items.empty()
               ? to_int(nodes->second.items.front().text).value_or(0)
               : 0;
  }

  Expansion expansion(std::string_view raw, std::size_t line, bool quoted) {
    if (raw.starts_with("$((") && raw.ends_with("))")) {
      return arithmetic(raw, line);
    }
    if (raw.starts_with("$(") || raw[0] == '`') {
      return unknown(false, raw, line, nodes_listed(raw));
    }
    if (raw.starts_with("${")) {
      return braces(raw, line, quoted);
    }
    return element(raw.substr(1), std::nullopt, raw, line, quoted);
  }

  /// A variable or an argument, all of them not included.
  Expansion value(std::string_view name, std::string_view raw, std::size_t line) {
    const auto found = variables_.values.find(name);
    if (found != variables_.values.end()) {
      const ShellWord* const first = item_at(found->second.items, 0);  // of an array
      return first == nullptr ? unknown(true, raw, line) : one(first->text, line);
    }
    const std::optional<std::int64_t> number = to_int(name);
    if (number && *number > 0) {
      const std::optional<ShellWord> word = variables_.argument(*number);
      return !word                         ? unknown(true, raw, line)
             : variables_.may_split(*word) ? unknown(false, raw, line)
                                           : one(word->text, line);
    }
    const bool own = std::ranges::find(kOwn, name) != kOwn.end();
    return unknown(is_shell_name(name) && !own, raw, line, own ? 1 : 0);
  }

  /// Bare names are variables too. ERRORS: no expression.
  Expansion arithmetic(std::string_view raw, std::size_t line) {
    const std::string text = expand_one(raw.substr(3, raw.size() - 5), line);
    if (variables_.unknown_in(text) != nullptr) {
      if (changes_shell_variable(text)) {
        forget_names(text, line, variables_);
      }
      return one(counted(first_mark(text)), line);
    }
    reason_.clear();
    unset_is_zero_ = changes_shell_variable(text);
    const std::optional<std::int64_t> result = number(text, line);
    unset_is_zero_ = true;
    if (result) {
      return one(std::to_string(*result), line);
    }
    return reason_.empty() ? unknown(false, raw, line) : one(counted(reason_), line);
  }

  /// What is not known as a number: not empty, even where a variable is not set.
  std::string counted(std::string_view marker) {
    ShellUnknown unknown = *variables_.unknown_in(marker);
    unknown.words = 1;
    return variables_.mark(std::move(unknown));
  }

 public:
  /// ERRORS: those of shell_arithmetic().
  std::optional<std::int64_t> number(std::string_view text, std::size_t line) {
    return shell_arithmetic(
        text, file_, line, [&](std::string_view name) { return number_of(name, line); },
        [&](std::string_view name, std::optional<std::int64_t> given) {
          const std::string_view variable = name.substr(0, name.find('['));
          if (!given || name.ends_with("[?]")) {
            variables_.forget(variable, line);
          } else {
            assign_shell({ShellToken::Kind::kWord,
                          std::string(name) + "=" + std::to_string(*given),
                          line,
                          {}},
                         file_, variables_);
          }
        });
  }

 private:
  /// What a variable counts as, which may hold an expression of its own.
  std::optional<std::int64_t> number_of(std::string_view name, std::size_t line) {
    const std::string content = expand_one("${" + std::string(name) + "}", line);
    const std::optional<std::string> known = variables_.as_condition(content);
    if (!known) {
      reason_ = first_mark(content);
      return std::nullopt;
    }
    if (!unset_is_zero_ && variables_.unknown_in(content) != nullptr) {
      reason_ = first_mark(content);
      return std::nullopt;
    }
    if (++depth_ > kMaxDepth) {
      throw Error("expansions stand inside each other too deeply").at(file_, line);
    }
    std::optional<std::int64_t> result;
    try {
      result = number(*known, line);
    } catch (const Error&) {  // bash leaves the command out then
      result = std::nullopt;
    }
    --depth_;
    return result;
  }

  static std::string_view first_mark(std::string_view text) {
    const std::size_t begin = text.find(ShellVariables::kMarkBegin);
    return text.substr(begin, text.find(ShellVariables::kMarkEnd, begin) + 1 - begin);
  }

  std::string expand_one(std::string_view raw, std::size_t line) {
    const bool outer = std::exchange(pattern_, false);
    std::string text;
    for (const ShellWord& word : run(raw, line, false)) {
      text += (text.empty() ? "" : " ") + word.text;
    }
    pattern_ = outer;
    return text;
  }

  Expansion braces(std::string_view raw, std::size_t line, bool quoted) {
    std::string_view body = raw.substr(2, raw.size() - 3);
    if (body == "#") {
      return element(body, std::nullopt, raw, line, quoted);
    }
    const bool count = body.size() > 1 && body[0] == '#';
    body.remove_prefix(count ? 1 : 0);
    std::size_t end = 0;
    while (end < body.size() && is_shell_name(body.substr(0, end + 1))) {
      ++end;
    }
    if (end == 0) {  // ${1}, ${10:-x}, ${@}
      end = body.find_first_not_of("0123456789");
      end = std::min(end == 0 && !body.empty() && (body[0] == '@' || body[0] == '*') ? 1 : end,
                     body.size());
    }
    const std::string_view name = body.substr(0, end);
    std::string_view rest = body.substr(end);
    std::optional<std::string_view> index;
    if (rest.starts_with('[') && rest.find(']') != std::string_view::npos) {
      index = rest.substr(1, rest.find(']') - 1);
      rest.remove_prefix(index->size() + 2);
    }
    const std::size_t known = variables_.unknowns.size();
    const Expansion plain = element(name, index, raw, line, quoted && !count);
    if (count) {
      return rest.empty() ? size_of(plain, raw, line) : unknown(false, raw, line);
    }
    if (rest.empty()) {
      return name.empty() ? unknown(false, raw, line) : plain;
    }
    if (name.empty() && (rest.ends_with("[@]") || rest.ends_with("[*]"))) {  // ${!A[@]}
      return unknown_list(raw, line);
    }
    return edited(name, plain, rest, raw, line, quoted, known);
  }

  /// ${NAME:-word} and its kin. `known`: how many unknowns there were before `plain`.
  Expansion edited(std::string_view name, const Expansion& plain, std::string_view rest,
                   std::string_view raw, std::size_t line, bool quoted, std::size_t known) {
    const bool colon = rest[0] == ':';
    rest.remove_prefix(colon ? 1 : 0);
    const char action = rest.empty() ? '\0' : rest[0];
    if (std::string_view("-=+?").find(action) == std::string_view::npos || action == '\0') {
      return plain.list ? unknown_list(raw, line) : unknown(false, raw, line);
    }
    const bool missing = is_missing(plain, colon, known);
    rest.remove_prefix(1);
    if (action == '?') {
      return plain;
    }
    if (action == '+') {
      const bool undecided = !missing && plain.items.size() == 1 &&
                             variables_.unknown_in(plain.items.front().text) != nullptr &&
                             !variables_.is_something(plain.items.front().text) &&
                             !variables_.is_nothing(plain.items.front().text);
      return undecided               ? unknown_list(raw, line)
             : !missing              ? words_of(rest, line, quoted)
             : quoted && !plain.list ? one("", line)
                                     : Expansion();
    }
    if (!missing) {
      return plain;
    }
    Expansion other = words_of(rest, line, quoted);
    if (action == '=' && is_shell_name(name)) {
      variables_.set(name, expand_one(rest, line), line);
    }
    return other;
  }

  /// Not set, or with a `colon` empty.
  bool is_missing(const Expansion& plain, bool colon, std::size_t known) const {
    if (plain.items.size() != 1) {
      return item_at(plain.items, 0) == nullptr;
    }
    const std::string& text = plain.items.front().text;
    const ShellUnknown* const unknown = variables_.unknown_in(text);
    const bool set = unknown != nullptr && unknown < variables_.unknowns.data() + known;
    return unknown == nullptr ? colon && text.empty()
                              : (colon || !set) && variables_.is_nothing(text);
  }

  Expansion words_of(std::string_view raw, std::size_t line, bool quoted) {
    if (quoted && raw.empty()) {
      return one("", line);
    }
    return {run(raw, line, cut_ && !quoted, quoted), true, true};
  }

  Expansion element(std::string_view name, std::optional<std::string_view> index,
                    std::string_view raw, std::size_t line, bool quoted) {
    if (name == "@" || name == "*") {
      return all_of(variables_.arguments, name == "*", line, quoted);
    }
    if (name == "#") {
      return size_of({variables_.arguments, true}, raw, line);
    }
    if (!index) {
      return value(name, raw, line);
    }
    const bool all = *index == "@" || *index == "*";
    const auto found = variables_.values.find(name);
    if (found == variables_.values.end()) {
      Expansion none = unknown(true, raw, line);
      none.list = all && (*index == "@" || !quoted);
      none.items.front().loose = none.list;  // no word
      return none;
    }
    if (all) {
      return all_of(found->second.items, *index == "*", line, quoted);
    }
    std::optional<std::int64_t> number = index_of(*index, line);
    const auto& items = found->second.items;
    if (number && *number < 0) {  // from the end
      *number += std::ranges::count_if(items, [&](auto& item) { return !is_none(item); });
    }
    for (const ShellWord& item : items) {  // which element is which is not known then
      if (number != 0 && variables_.may_split(item)) {
        return unknown(false, raw, line);
      }
    }
    const ShellWord* const item = number ? item_at(items, *number) : nullptr;
    return item != nullptr ? one(item->text, line) : unknown(number.has_value(), raw, line);
  }

 public:
  /// The number of an element; nothing: it is not known, or a key.
  std::optional<std::int64_t> index_of(std::string_view raw, std::size_t line) {
    const std::string text = expand_one(raw, line);
    if (variables_.unknown_in(text) != nullptr) {
      return std::nullopt;
    }
    try {
      return number(text, line);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

 private:
  /// An unset variable that was not quoted.
  bool is_none(const ShellWord& item) const {
    return item.loose && variables_.is_nothing(item.text);
  }

  /// The elements are counted from 0; nullptr: there are fewer.
  const ShellWord* item_at(const std::vector<ShellWord>& items, std::int64_t number) const {
    for (const ShellWord& item : items) {
      if (!is_none(item) && number-- == 0) {
        return &item;
      }
    }
    return nullptr;
  }

  Expansion all_of(const std::vector<ShellWord>& items, bool star, std::size_t line, bool quoted) {
    if (!star || (cut_ && !quoted)) {
      return {items, true};
    }
    const std::optional<std::string> separators = variables_.separators();
    const std::string between =
        separators ? separators->substr(0, 1) : variables_.mark({.what = "$IFS", .line = line});
    std::string all;
    bool first = true;
    for (const ShellWord& item : items) {
      if (!is_none(item)) {
        all += (first ? "" : between) + item.text;
        first = false;
      }
    }
    return one(std::move(all), line);
  }

  /// Elements of an array, letters of a text.
  Expansion size_of(const Expansion& what, std::string_view raw, std::size_t line) {
    if (!what.list) {
      const std::string& text = what.items.front().text;
      return variables_.unknown_in(text) != nullptr ? unknown(false, raw, line)
                                                    : one(std::to_string(text.size()), line);
    }
    variables_.spend(what.items.size(), file_, line);
    std::int64_t size = 0;
    for (const ShellWord& item : what.items) {
      const ShellUnknown* const unknown = item.loose ? variables_.unknown_in(item.text) : nullptr;
      if (unknown != nullptr && unknown->words > 0 && first_mark(item.text) == item.text) {
        size += unknown->words;
      } else if (!variables_.may_split(item)) {
        size += unknown != nullptr && variables_.is_nothing(item.text) ? 0 : 1;
      } else {
        return one(std::string(first_mark(item.text)), line);
      }
    }
    return one(std::to_string(size), line);
  }

  const std::string& file_;
  ShellVariables& variables_;
  bool pattern_;
  bool cut_ = false;
  bool unset_is_zero_ = true;  ///< in arithmetic
  std::string reason_;         ///< why arithmetic gives nothing: a marker
  int depth_ = 0;
};

std::string in_one(const std::vector<ShellWord>& words) {
  std::string text;
  for (const ShellWord& word : words) {
    text += (&word == &words.front() ? "" : " ") + word.text;
  }
  return text;
}

}  // namespace

std::vector<ShellWord> expand_word(std::string_view raw, std::size_t line, const std::string& file,
                                   ShellVariables& variables) {
  if (raw.find('{') != std::string_view::npos && has_shell_braces(raw, file, line)) {
    return {{variables.mark({.what = printable(raw, 60), .line = line}), line, true}};
  }
  return Expander(file, variables).run(raw, line, true);
}

std::string expand_text(std::string_view raw, std::size_t line, const std::string& file,
                        ShellVariables& variables) {
  return in_one(Expander(file, variables).run(raw, line, false));
}

std::string expand_pattern(std::string_view raw, std::size_t line, const std::string& file,
                           ShellVariables& variables) {
  return in_one(Expander(file, variables, true).run(raw, line, false));
}

std::optional<std::int64_t> shell_number(std::string_view text, std::size_t line,
                                         const std::string& file, ShellVariables& variables) {
  return Expander(file, variables).number(text, line);
}

std::optional<std::int64_t> shell_index(std::string_view raw, std::size_t line,
                                        const std::string& file, ShellVariables& variables) {
  return Expander(file, variables).index_of(raw, line);
}

}  // namespace lockstep
