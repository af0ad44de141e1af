// Commands of their own: words, with the assignments before them.
#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_arithmetic.h"
#include "generator/megatron_args/shell_builtins.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_reader.h"
#include "generator/megatron_args/shell_test.h"

namespace lockstep {
namespace {

bool declares(std::string_view word) {
  static constexpr auto kDeclare =
      std::to_array<std::string_view>({"export", "declare", "local", "readonly", "typeset"});
  return std::ranges::find(kDeclare, word) != kDeclare.end();
}

bool is_expanded(std::string_view word) {
  return word.find_first_of("$`\"'\\") != std::string_view::npos && !word.starts_with("((");
}

/// The word as one that expands to itself.
ShellToken as_token(const ShellWord& word) {
  std::string text;
  for (std::size_t i = 0; i < word.text.size(); ++i) {
    const char c = word.text[i];
    const bool bare = is_shell_name(std::string{'_', c}) ||
                      std::string_view("-+=./:,@%[]").find(c) != std::string_view::npos;
    if (c == ShellVariables::kMarkBegin) {  // loose only outside of quotes
      const std::size_t end = word.text.find(ShellVariables::kMarkEnd, i) + 1;
      const std::string marker = word.text.substr(i, end - i);
      text += word.loose ? marker : '"' + marker + '"';
      i = end - 1;
    } else {
      text += bare ? std::string(1, c) : c == '\'' ? "\\'" : fmt::format("'{}'", c);
    }
  }
  return {ShellToken::Kind::kWord, text.empty() ? "''" : std::move(text), word.line, {}};
}

}  // namespace

const ShellToken* program_among(std::span<const ShellToken> tokens) {
  for (const ShellToken& token : tokens) {
    if (token.text.find(".py") != std::string::npos ||
        token.text.find("--num-layers") != std::string::npos) {
      return &token;
    }
  }
  return nullptr;
}

void ShellReader::warn(std::size_t line, const std::string& text) {
  script_.warnings.add(fmt::format("{}:{}: {}", file_, line, text));
}

ShellFrame::Local ShellReader::local_of(const std::string& name) {
  const auto found = variables().values.find(name);
  return {found == variables().values.end() ? std::nullopt : std::optional(found->second),
          variables().integers.contains(name), variables().odd.contains(name),
          variables().exported.contains(name)};
}

void ShellReader::restore(const std::string& name, ShellFrame::Local local) {
  const auto put = [&](auto& names, bool is_in) {
    if (is_in) {
      names.insert(name);
    } else {
      names.erase(name);
    }
  };
  put(variables().odd, local.odd);
  put(variables().integers, local.integer);
  put(variables().exported, local.exported);
  if (local.value) {
    variables().values.insert_or_assign(name, *std::move(local.value));
  } else {
    variables().values.erase(name);
  }
}

std::string ShellReader::text_of(std::string_view name) {
  const auto found = variables().values.find(name);
  return found == variables().values.end() || found->second.items.empty()
             ? ""
             : found->second.items.front().text;
}

ShellAnswer ShellReader::simple(bool active) {
  const std::size_t before = cursor_.at();
  const ShellWords found = cursor_.command();
  if (cursor_.at() == before) {
    cursor_.next();
  }
  const Tokens words = found.words;
  if (!active) {
    note_left_out(words);
  }
  if (words.empty() || (!active && forgets_ == 0)) {
    return Answer::kYes;
  }
  std::size_t k = 0;
  while (k < words.size() && shell_target(words[k])) {
    ++k;
  }
  const Answer answer = run_words(words.first(k), words.subspan(k), found, active);
  for (const ShellToken& word : active ? Tokens() : words) {
    forget_inside(word.text, word.line, variables());
    for (const ShellToken& element : word.elements) {
      forget_inside(element.text, element.line, variables());
    }
  }
  return answer;
}

ShellAnswer ShellReader::run_words(Tokens own, Tokens words, const ShellWords& found, bool active) {
  ShellBody kept;
  if (!words.empty() &&
      (!own.empty() || is_expanded(words[0].text) || (active && declares(words[0].text)))) {
    kept = expanded(words);  // before the assignments are done
    words = kept;
  }
  if (words.empty()) {
    const bool program = std::ranges::any_of(own, [](const ShellToken& token) {
      return token.text.find("$(") != std::string::npos ||
             token.text.find('`') != std::string::npos;
    });
    for (const ShellToken& token : own) {
      if (active) {
        assign_shell(token, file_, variables());
      } else {
        forget_shell(token, variables());
      }
    }
    return program ? Answer::kTakenYes : Answer::kYes;
  }
  if (!active) {
    return own_command(words, found, false).value_or(Answer::kTakenYes);
  }
  Answer answer = Answer::kYes;
  with(own, [&] {
    const std::optional<Answer> said = own_command(words, found, true);
    answer = said ? *said : ordinary(words);
  });
  return answer;
}

ShellBody ShellReader::expanded(Tokens words) {
  const bool declaration = declares(words[0].text);
  ShellBody kept;
  for (const ShellToken& word : words) {
    if (declaration && shell_target(word)) {
      kept.push_back(expanded_assignment(word));
      continue;
    }
    std::vector<ShellWord> all = expand_word(word.text, word.line, file_, variables());
    if (kept.empty()) {
      variables().drop_nothing(all);
    }
    std::ranges::transform(all, std::back_inserter(kept), as_token);
  }
  return kept;
}

ShellToken ShellReader::expanded_assignment(const ShellToken& token) {
  if (token.kind == ShellToken::Kind::kArray) {
    return token;
  }
  const std::size_t value = shell_target(token)->value;
  ShellToken kept = as_token(
      {expand_text(std::string_view(token.text).substr(value), token.line, file_, variables()),
       token.line});
  kept.text.insert(0, token.text, 0, value);
  return kept;
}

void ShellReader::note_left_out(Tokens words) {
  const ShellToken* const program = passes_over_ ? nullptr : program_among(words);
  if (program != nullptr && script_.left_out.line == 0) {
    script_.left_out = {program->line, std::string(why_)};
  }
}

std::optional<ShellAnswer> ShellReader::own_command(Tokens words, const ShellWords& found,
                                                    bool certain) {
  const std::string& name = words[0].text;
  if (state_.functions.contains(name)) {
    return call(name, words, certain);
  }
  if (variables().unknown_in(name) != nullptr && program_among(words) == nullptr &&
      !state_.functions.empty()) {
    const Answer answer = call_some(words, certain);
    return answer == Answer::kUnknown ? std::optional(answer) : std::nullopt;
  }
  if ((name == "command" || name == "builtin") && words.size() > 1 &&
      !words[1].text.starts_with('-')) {
    if (state_.functions.contains(words[1].text)) {
      return Answer::kTakenYes;  // the program of that name
    }
    const ShellBody inner = expanded(words.subspan(1));
    return inner.empty() ? Answer::kYes : own_command(inner, found, certain);
  }
  if (declares(name)) {
    return declare(words, certain);
  }
  if (name == "[" || name == "test") {
    const bool bracket = name == "[" && words.back().text == "]";
    const Tokens inside = words.subspan(1, words.size() - 1 - (bracket ? 1 : 0));
    return shell_test(inside, false, file_, variables());
  }
  if (name == "true" || name == ":") {
    if (certain) {
      for (const ShellToken& word : words) {  // : ${NAME:=word}
        expand_word(word.text, word.line, file_, variables());
      }
    }
    return Answer::kYes;
  }
  if (name == "false") {
    return Answer::kNo;
  }
  if (name.starts_with("((") || name == "let") {
    return arithmetic(words, certain);
  }
  if (name == "eval") {
    return evaluate(words, certain);
  }
  if (name == "exit" || name == "exec") {
    return leave(words, certain);
  }
  if (name == "return" && frame_.function) {
    return leave_function(words, certain);
  }
  if (name == "unset" && words.size() > 1 && words[1].text == "-f") {
    return unset_functions(words, certain);
  }
  if (name == "unset") {
    note_unset(words.subspan(1));
  }
  if (name == "shopt") {
    state_.last_pipe = state_.last_pipe || std::ranges::any_of(words, [](const auto& word) {
                         return word.text == "lastpipe";
                       });
    return Answer::kYes;
  }
  if (name == "source" || name == ".") {
    if (certain) {
      warn(words[0].line, "another file is read here: its variables are not known");
    }
    return Answer::kTakenYes;
  }
  return run_shell_builtin(words, found.here ? &*found.here : nullptr, certain, file_, variables(),
                           script_.warnings);
}

ShellAnswer ShellReader::arithmetic(Tokens words, bool certain) {
  const bool let = words[0].text == "let";
  Answer answer = Answer::kUnknown;
  for (const ShellToken& word : words.subspan(let ? 1 : 0)) {
    const std::string raw = let ? word.text : word.text.substr(2, word.text.size() - 4);
    if (!certain) {
      if (changes_shell_variable(raw)) {
        forget_names(raw, word.line, variables());
      }
      continue;
    }
    const std::string text = expand_text(raw, word.line, file_, variables());
    if (variables().unknown_in(text) == nullptr) {
      const auto value = shell_number(text, word.line, file_, variables());
      answer = value ? shell_answer(*value != 0) : Answer::kUnknown;
      continue;
    }
    answer = Answer::kUnknown;
    if (changes_shell_variable(text)) {
      warn(word.line, fmt::format("'{}' is not worked out: its variables are not known",
                                  printable(trim(raw))));
      forget_names(raw, word.line, variables());
    }
  }
  return answer;
}

ShellAnswer ShellReader::status(Tokens words) {
  if (words.size() < 2 || words[1].text == "$?" || words[1].text == "\"$?\"") {
    return state_.last;
  }
  const std::string text = expand_text(words[1].text, words[1].line, file_, variables());
  const std::optional<std::int64_t> number = to_int(text);
  return number ? shell_answer((*number & 255) == 0) : Answer::kUnknown;
}

ShellAnswer ShellReader::leave(Tokens words, bool certain) {
  if (words[0].text == "exec") {
    if (words.size() < 2) {
      return Answer::kYes;  // redirections
    }
    if (certain) {
      ordinary(words);
    }
  }
  const std::size_t line = words[0].line;
  if (!certain || state_.doubts > 0) {
    warn(line, fmt::format("whether the '{}' here ends the script is not known: what follows is "
                           "read as if it did not",
                           words[0].text));
    return Answer::kUnknown;
  }
  state_.ended = words[0].text == "exec" ? Answer::kTakenYes : status(words);
  const bool trains = std::ranges::any_of(script_.commands, [](const ShellCommand& command) {
    return std::ranges::any_of(command.words, [](const ShellWord& word) {
      return word.text.find(".py") != std::string::npos || word.text.starts_with("--num-layers");
    });
  });
  if (state_.subshells == 0 && !trains) {
    warn(line, "the script ends here: what follows is not read");
  }
  return *state_.ended;
}

ShellAnswer ShellReader::leave_function(Tokens words, bool certain) {
  if (certain) {
    frame_.returned = status(words);
    return *frame_.returned;
  }
  if (frame_.certain && !frame_.may_have_returned) {
    warn(words[0].line,
         "whether the function ends here cannot be decided: what follows in it is left out, and "
         "what it sets is not known");
  }
  frame_.may_have_returned = true;
  return Answer::kUnknown;
}

ShellAnswer ShellReader::unset_functions(Tokens words, bool certain) {
  for (const ShellToken& word : words.subspan(2)) {
    const auto found = state_.functions.find(expand_text(word.text, word.line, file_, variables()));
    if (found != state_.functions.end() && certain) {
      state_.functions.erase(found);
    } else if (found != state_.functions.end()) {
      found->second.certain = false;
    }
  }
  return Answer::kYes;
}

void ShellReader::note_unset(Tokens words) {
  for (const ShellToken& word : words) {
    if (const auto found = state_.prefixed.find(word.text); found != state_.prefixed.end()) {
      found->second = true;
    }
    if (frame_.function && !frame_.locals.contains(word.text) && state_.local.contains(word.text)) {
      warn(word.line, fmt::format("'{}' may be local to the function around this: what it holds "
                                  "then is not known",
                                  printable(word.text)));
    }
  }
}

ShellAnswer ShellReader::ordinary(Tokens words) {
  ShellCommand command;
  command.line = words[0].line;
  for (const ShellToken& word : words) {
    std::ranges::move(expand_word(word.text, word.line, file_, variables()),
                      std::back_inserter(command.words));
  }
  if (command.words.empty()) {
    return Answer::kYes;
  }
  if (command.words[0].text.empty()) {
    return Answer::kNo;  // there is no such program
  }
  keep(std::move(command));
  return Answer::kTakenYes;
}

}  // namespace lockstep
