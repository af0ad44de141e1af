// export, declare, local and their kin.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_reader.h"

namespace lockstep {
namespace {

bool has(std::string_view flags, char flag) { return flags.find(flag) != std::string_view::npos; }

std::string quoted(std::string_view text) {
  std::string all = "'";
  for (const char c : text) {
    all += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return all + "'";
}

}  // namespace

ShellAnswer ShellReader::declare(Tokens words, bool certain) {
  const std::string& kind = words[0].text;
  std::string flags = kind == "export" ? "x" : kind == "readonly" ? "r" : "";
  std::size_t i = 1;
  for (; i < words.size() && words[i].kind == ShellToken::Kind::kWord &&
         (words[i].text.starts_with('-') || words[i].text.starts_with('+'));
       ++i) {
    flags += words[i].text[0] == '+' ? "+" : words[i].text.substr(1);
  }
  if (has(flags, 'f') || has(flags, 'F') || has(flags, 'p')) {
    for (const ShellToken& word : words.subspan(i)) {
      if (const auto found = state_.functions.find(word.text);
          found != state_.functions.end() && has(flags, 'x')) {
        found->second.exported = true;
      }
    }
    return Answer::kYes;
  }
  const bool local =
      frame_.function &&
      (kind == "local" || ((kind == "declare" || kind == "typeset") && !has(flags, 'g')));
  Answer answer = Answer::kYes;
  const auto one = [&](const ShellToken& token) {
    answer = shell_and(answer, declare_one(token, flags, local, certain));
  };
  for (const ShellToken& word : words.subspan(i)) {
    if (shell_target(word)) {
      one(word);
      continue;
    }
    for (const ShellWord& each : expand_word(word.text, word.line, file_, variables())) {
      const std::size_t equals = std::min(each.text.find('='), each.text.size());
      const std::string name = each.text.substr(0, equals);
      if (variables().unknown_in(name) != nullptr && !variables().is_nothing(name)) {
        warn(word.line, fmt::format("what '{}' sets here is not known: {}", printable(kind),
                                    variables().unknown_in(name)->what));
        answer = shell_and(answer, Answer::kUnknown);
      } else if (equals < each.text.size()) {
        one({ShellToken::Kind::kWord,
             name + "=" + quoted(each.text.substr(equals + 1)),
             word.line,
             {}});
      } else if (!variables().is_nothing(name)) {
        one({ShellToken::Kind::kWord, name, word.line, {}});
      }
    }
  }
  return answer;
}

ShellAnswer ShellReader::declare_one(const ShellToken& token, std::string_view flags, bool local,
                                     bool certain) {
  const std::optional<ShellTarget> target = shell_target(token);
  const std::string name = target ? target->name : token.text.substr(0, token.text.find('['));
  if (!is_shell_name(name)) {
    return Answer::kNo;
  }
  const bool first = local && frame_.locals.try_emplace(name, local_of(name)).second;
  if (local) {
    state_.local.insert(name);
  }
  if (has(flags, 'n') || has(flags, 'A') || has(flags, 'l') || has(flags, 'u') || has(flags, 'c') ||
      has(flags, '+') || (has(flags, 'i') && has(flags, 'a'))) {
    if (has(flags, 'n') && target) {
      const std::string other = expand_text(std::string_view(token.text).substr(target->value),
                                            token.line, file_, variables());
      warn(token.line,
           fmt::format("'{}' is another name: what it and that hold is not known", name));
      if (is_shell_name(other)) {
        variables().make_odd(other, token.line);
      }
    }
    variables().make_odd(name, token.line);
    return Answer::kYes;
  }
  if (has(flags, 'i')) {
    variables().integers.insert(name);
  }
  if (has(flags, 'g') && frame_.function && state_.local.contains(name)) {
    warn(token.line, fmt::format("'{}' is also local here: what it holds is not known", name));
    variables().make_odd(name, token.line);
    if (const auto outer = frame_.locals.find(name); outer != frame_.locals.end()) {
      outer->second = local_of(name);
    }
  } else if (!certain) {
    if (target) {
      forget_shell(token, variables());
    } else if (local) {
      variables().forget(name, token.line);
    }
  } else if (target) {
    assign_shell(token, file_, variables());
    if (first && target->more) {
      variables().forget(name, token.line);
    }
  } else if (first) {
    variables().values.erase(name);  // it begins without a value
  }
  if (const auto found = state_.prefixed.find(name); !local && found != state_.prefixed.end()) {
    found->second = true;
  }
  if (has(flags, 'x')) {
    variables().exported.insert(name);
  }
  if (has(flags, 'r')) {
    variables().odd.insert(name);  // what it is given from now on is an error
  }
  return Answer::kYes;
}

}  // namespace lockstep
