#include "generator/megatron_args/shell_expand.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_arithmetic.h"
#include "generator/megatron_args/shell_assign.h"
#include "generator/megatron_args/shell_change.h"
#include "generator/megatron_args/shell_lexer.h"

namespace lockstep {
namespace {

constexpr int kMaxDepth = 32;

/// What an expansion gives: one text, or the elements of an array.
struct Expansion {
  std::vector<ShellWord> items;
  bool list = false;  ///< "${A[@]}": quoted, a word for each item
};

class Expander {
 public:
  Expander(const std::string& file, ShellVariables& variables)
      : file_(file), variables_(variables) {}

  /// `cut`: at blanks that are not quoted.
  std::vector<ShellWord> run(std::string_view raw, std::size_t line, bool cut) {
    if (++depth_ > kMaxDepth) {
      throw Error("expansions stand inside each other too deeply").at(file_, line);
    }
    std::vector<ShellWord> words;
    bool open = false;  // the last of `words` still grows
    bool quoted = false, empty_list = false;
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
        add(raw.substr(i + 1, end - i - 1), line);
        i = std::min(end + 1, raw.size());
      } else if (c == '\\' && i + 1 < raw.size()) {
        const bool kept =
            quoted && std::string_view("$`\"\\\n").find(raw[i + 1]) == std::string_view::npos;
        if (raw[i + 1] != '\n') {
          add(raw.substr(kept ? i : i + 1, kept ? 2 : 1), line);
        }
        i += 2;
      } else if (c == '$' || c == '`') {
        std::size_t ignored = line;
        const std::size_t end = skip_expansion(raw, i, file_, ignored);
        if (end == i + 1) {  // a dollar alone; before a quote: $'…', $"…"
          if (end == raw.size() || (raw[end] != '\'' && raw[end] != '"') || quoted) {
            add("$", line);
          }
        } else {
          const Expansion found = expansion(raw.substr(i, end - i), line, quoted);
          empty_list = empty_list || found.items.empty();
          put(found, quoted || !cut, line, add, open);
        }
        i = end;
      } else {
        add(raw.substr(i, 1), line, c == ShellVariables::kMarkBegin && !quoted);
        ++i;
      }
    }
    --depth_;
    if (empty_list && words.size() == 1 && words.front().text.empty()) {
      words.clear();  // "${A[@]}" of an empty array is no word
    }
    return words;
  }

 private:
  template <class Add>
  void put(const Expansion& expansion, bool whole, std::size_t line, const Add& add, bool& open) {
    for (std::size_t k = 0; k < expansion.items.size(); ++k) {
      const ShellWord& item = expansion.items[k];
      const std::size_t at = expansion.list ? item.line : line;
      if (k > 0) {
        open = false;
      }
      if (whole) {
        add(item.text, at, expansion.list && item.loose);
        continue;
      }
      const std::string_view text = item.text;
      std::size_t begin = 0;
      while (begin < text.size()) {
        const std::size_t word = text.find_first_not_of(" \t\r\n", begin);
        if (word > begin) {
          open = false;
        }
        if (word == std::string_view::npos) {
          break;
        }
        const std::size_t end = std::min(text.find_first_of(" \t\r\n", word), text.size());
        const std::string_view piece = text.substr(word, end - word);
        add(piece, at, piece.find(ShellVariables::kMarkBegin) != std::string_view::npos);
        begin = end;
      }
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
    if (raw == "$*" && quoted) {
      return all_in_one(variables_.arguments(), line);
    }
    if (raw.starts_with("${")) {
      return braces(raw, line, quoted);
    }
    return value(raw.substr(1), raw, line);
  }

  Expansion value(std::string_view name, std::string_view raw, std::size_t line) {
    const auto found = variables_.values.find(name);
    if (found != variables_.values.end()) {
      const std::vector<ShellWord>& items = found->second.items;
      return items.empty() ? one("", line)
                           : one(items.front().text, line);  // of an array its first
    }
    if (name == "@" || name == "*") {
      return {variables_.arguments(), true};
    }
    if (name == "#") {
      return one(std::to_string(variables_.arguments().size()), line);
    }
    return unknown(is_shell_name(name) || to_int(name).has_value(), raw, line);
  }

  /// Bare names are variables too. ERRORS: not a number.
  Expansion arithmetic(std::string_view raw, std::size_t line) {
    const std::string text = expand_one(raw.substr(3, raw.size() - 5), line);
    if (variables_.unknown_in(text) != nullptr) {
      return one(std::string(first_mark(text)), line);
    }
    if (changes_shell_variable(text)) {
      return changed(text, raw, line);
    }
    std::string reason;
    const std::optional<std::int64_t> result =
        shell_arithmetic(text, file_, line, [&](std::string_view name) {
          const Expansion found = value(name, "$" + std::string(name), line);
          const std::string& content = found.items.front().text;
          if (variables_.unknown_in(content) != nullptr) {
            reason = first_mark(content);
            return std::optional<std::int64_t>();
          }
          return trim(content).empty() ? std::optional<std::int64_t>(0) : to_int(trim(content));
        });
    if (result) {
      return one(std::to_string(*result), line);
    }
    return reason.empty() ? unknown(false, raw, line) : one(reason, line);
  }

  /// $((NAME++)), $((NAME += 2)) and their kin; of others the variables are not known.
  Expansion changed(const std::string& text, std::string_view raw, std::size_t line) {
    const std::optional<ShellChange> change = shell_change(text);
    if (!change) {
      forget_names(text, line, variables_);
      return unknown(false, raw, line);
    }
    const bool after = trim(text).ends_with("++") || trim(text).ends_with("--");
    const std::string before = expand_one("$((${" + change->name + ":-0}))", line);
    const std::string now = expand_one(change->value, line);
    variables_.set(change->name, now, line);
    return one(after ? before : now, line);
  }

  static std::string_view first_mark(std::string_view text) {
    const std::size_t begin = text.find(ShellVariables::kMarkBegin);
    return text.substr(begin, text.find(ShellVariables::kMarkEnd, begin) + 1 - begin);
  }

  std::string expand_one(std::string_view raw, std::size_t line) {
    std::string text;
    for (const ShellWord& word : run(raw, line, false)) {
      text += (text.empty() ? "" : " ") + word.text;
    }
    return text;
  }

  Expansion braces(std::string_view raw, std::size_t line, bool quoted) {
    std::string_view body = raw.substr(2, raw.size() - 3);
    if (body == "#") {
      return value(body, raw, line);
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
    return edited(name, plain, rest, raw, line, quoted);
  }

  /// ${NAME:-word} and its kin.
  Expansion edited(std::string_view name, const Expansion& plain, std::string_view rest,
                   std::string_view raw, std::size_t line, bool quoted) {
    const bool colon = rest[0] == ':';
    rest.remove_prefix(colon ? 1 : 0);
    const char action = rest.empty() ? '\0' : rest[0];
    if (std::string_view("-=+?").find(action) == std::string_view::npos || action == '\0') {
      return plain.list ? unknown_list(raw, line) : unknown(false, raw, line);
    }
    const bool missing =
        (plain.items.empty() ? colon || !variables_.values.contains(name)
                             : std::all_of(plain.items.begin(), plain.items.end(), [&](auto& item) {
                                 const bool unset = variables_.unknown_in(item.text) != nullptr;
                                 return unset ? variables_.is_nothing(item.text)
                                              : colon && item.text.empty();
                               }));
    rest.remove_prefix(1);
    if (action == '?') {
      return plain;
    }
    if (action == '+') {
      return missing ? Expansion() : words_of(rest, line, quoted);
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

  Expansion words_of(std::string_view raw, std::size_t line, bool quoted) {
    return quoted ? one(expand_one(raw, line), line) : Expansion{run(raw, line, true), true};
  }

  Expansion element(std::string_view name, std::optional<std::string_view> index,
                    std::string_view raw, std::size_t line, bool quoted) {
    if (!index) {
      return value(name, raw, line);
    }
    const auto found = variables_.values.find(name);
    if (found == variables_.values.end()) {
      return unknown(true, raw, line);
    }
    if (*index == "*" && quoted) {
      return all_in_one(found->second.items, line);
    }
    if (*index == "@" || *index == "*") {
      return {found->second.items, true};
    }
    std::optional<std::int64_t> number = to_int(expand_one(*index, line));
    const auto& items = found->second.items;
    if (number && *number < 0) {  // from the end
      *number += std::ssize(items);
    }
    for (const ShellWord& item : items) {  // which element is which is not known then
      if (number != 0 && item.loose && variables_.unknown_in(item.text) != nullptr) {
        return unknown(false, raw, line);
      }
    }
    if (!number || *number < 0 || *number >= static_cast<std::int64_t>(items.size())) {
      return unknown(number.has_value(), raw, line);
    }
    return one(items[static_cast<std::size_t>(*number)].text, line);
  }

  static Expansion all_in_one(const std::vector<ShellWord>& items, std::size_t line) {
    std::string all;
    for (const ShellWord& item : items) {
      all += (all.empty() ? "" : " ") + item.text;
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
    std::int64_t size = 0;
    for (const ShellWord& item : what.items) {
      const ShellUnknown* const unknown = item.loose ? variables_.unknown_in(item.text) : nullptr;
      if (unknown == nullptr) {
        ++size;
      } else if (unknown->words > 0 && first_mark(item.text) == item.text) {
        size += unknown->words;
      } else if (!variables_.is_nothing(item.text)) {
        return one(std::string(first_mark(item.text)), line);
      }
    }
    return one(std::to_string(size), line);
  }

  const std::string& file_;
  ShellVariables& variables_;
  int depth_ = 0;
};

}  // namespace

std::vector<ShellWord> expand_word(std::string_view raw, std::size_t line, const std::string& file,
                                   ShellVariables& variables) {
  return Expander(file, variables).run(raw, line, true);
}

std::string expand_text(std::string_view raw, std::size_t line, const std::string& file,
                        ShellVariables& variables) {
  std::string text;
  for (const ShellWord& word : Expander(file, variables).run(raw, line, false)) {
    text += (text.empty() ? "" : " ") + word.text;
  }
  return text;
}

}  // namespace lockstep
