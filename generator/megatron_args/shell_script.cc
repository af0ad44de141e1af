#include "generator/megatron_args/shell_script.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_builtins.h"
#include "generator/megatron_args/shell_change.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_reader.h"
#include "generator/megatron_args/shell_test.h"
#include "generator/megatron_args/slurm_lines.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 20;
constexpr int kMaxInside = 56;          // how deep a script may stand in others
constexpr std::size_t kCallCost = 256;  // characters that a call counts as

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool declares(const ShellToken& word) {
  static constexpr auto kDeclare =
      std::to_array<std::string_view>({"export", "declare", "local", "readonly", "typeset"});
  return std::ranges::find(kDeclare, word.text) != kDeclare.end();
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

ShellAnswer ShellReader::run() {
  const Answer answer = list({}, true);
  if (!cursor_.at_end()) {
    throw Error(
        fmt::format("'{}' stands where a command should begin", printable(cursor_.here().text)))
        .at(file_, cursor_.line());
  }
  return answer;
}

ShellAnswer ShellReader::run_body(bool active, int forgets) {
  in_function_ = true;
  forgets_ = forgets;
  const Answer answer = list({}, active);
  for (auto& [name, value] : locals_) {
    restore(name, std::move(value));
  }
  return returned_.value_or(answer);
}

void ShellReader::warn(std::size_t line, const std::string& text) {
  script_.warnings.add(fmt::format("{}:{}: {}", file_, line, text));
}

void ShellReader::restore(const std::string& name, std::optional<Value> value) {
  if (value) {
    variables().values.insert_or_assign(name, *std::move(value));
  } else {
    variables().unset(name);
  }
}

std::optional<ShellVariables::Value> ShellReader::value_of(const std::string& name) {
  const auto found = variables().values.find(name);
  return found == variables().values.end() ? std::nullopt : std::optional(found->second);
}

ShellAnswer ShellReader::call(ShellFunction& function, Tokens words, bool active) {
  const std::size_t line = words[0].line;
  if (!active && function.runs) {
    return Answer::kYes;  // a call of itself that may never be
  }
  const bool outer_runs = std::exchange(function.runs, true);
  function.called = true;
  variables().spend(kCallCost + function.body.size(), file_, line);
  const std::vector<ShellWord> outer = variables().arguments();
  std::vector<ShellWord> arguments;
  for (const ShellToken& word : words.subspan(1)) {
    std::ranges::move(expand_word(word.text, word.line, file_, variables()),
                      std::back_inserter(arguments));
  }
  std::erase_if(arguments, [&](const ShellWord& word) {
    return word.loose && variables().is_nothing(word.text);
  });
  variables().set_arguments(arguments);
  ShellReader reader(function.body, file_, script_, functions_, launcher_, depth_);
  reader.why_ = why_;
  reader.passes_over_ = passes_over_;
  const Answer answer = reader.run_body(active, forgets_);
  variables().set_arguments(outer);
  function.runs = outer_runs;
  return answer;
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
  while (k < words.size() && !declares(words[k]) && shell_target(words[k])) {
    ++k;
  }
  if (k < words.size() && !declares(words[k])) {
    return active ? ordinary(words.subspan(k), words.first(k), found)
                  : own_command(words.subspan(k), found, false).value_or(Answer::kYes);
  }
  const bool local =
      in_function_ && k < words.size() && (words[k].text == "local" || words[k].text == "declare");
  for (const ShellToken& word : words.subspan(local ? k + 1 : 0)) {
    const std::optional<ShellTarget> target = shell_target(word);
    const std::string name = target ? target->name : word.text;
    if (local && is_shell_name(name) && !locals_.contains(name)) {
      locals_.emplace(name, value_of(name));
    }
    if (active) {
      assign_shell(word, file_, variables());
    } else {
      forget_shell(word, variables());
    }
  }
  return Answer::kYes;
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
  if (name == "[" || name == "test") {
    const bool bracket = name == "[" && words.back().text == "]";
    return shell_test(words.subspan(1, words.size() - 1 - (bracket ? 1 : 0)), false, file_,
                      variables());
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
  if (const auto function = functions_.find(name); function != functions_.end()) {
    return call(function->second, words, certain);
  }
  if (name == "return" && in_function_) {
    const std::string status =
        words.size() > 1 ? expand_text(words[1].text, words[1].line, file_, variables()) : "0";
    if (certain) {
      returned_ = shell_answer(status == "0");
    }
    return Answer::kYes;
  }
  return run_shell_builtin(words, found.here ? &*found.here : nullptr, certain, file_, variables());
}

ShellAnswer ShellReader::arithmetic(Tokens words, bool certain) {
  const std::string& name = words[0].text;
  if (name != "let" && !changes_shell_variable(name)) {
    const std::optional<std::int64_t> value =
        to_int(expand_text("$" + name, words[0].line, file_, variables()));
    return value ? shell_answer(*value != 0) : Answer::kUnknown;
  }
  for (const ShellToken& word : words.subspan(name == "let" ? 1 : 0)) {
    const std::string text = name == "let" ? expand_text(word.text, word.line, file_, variables())
                                           : word.text.substr(2, word.text.size() - 4);
    if (certain) {
      change(text, word.line);
    } else if (changes_shell_variable(text)) {
      forget_names(text, word.line, variables());
    }
  }
  return Answer::kYes;
}

void ShellReader::change(const std::string& text, std::size_t line) {
  if (const std::optional<ShellChange> change = shell_change(text)) {
    variables().set(change->name, expand_text(change->value, line, file_, variables()), line);
    return;
  }
  warn(line,
       fmt::format("'{}' is not worked out: its variables are not known", printable(trim(text))));
  forget_names(text, line, variables());
}

ShellAnswer ShellReader::ordinary(Tokens words, Tokens own, const ShellWords& found) {
  if (words[0].text == "source" || words[0].text == ".") {
    warn(words[0].line, "another file is read here: its variables are not known");
    return Answer::kYes;
  }
  std::optional<Answer> answer;
  with(own, [&] { answer = own_command(words, found, true); });
  if (answer) {
    return *answer;
  }
  ShellCommand command;
  command.line = words[0].line;
  for (const ShellToken& word : words) {
    std::ranges::move(expand_word(word.text, word.line, file_, variables()),
                      std::back_inserter(command.words));
  }
  if (command.words.empty()) {  // then they stay
    std::ranges::for_each(
        own, [&](const ShellToken& token) { assign_shell(token, file_, variables()); });
  } else {
    with(own, [&] { keep(std::move(command)); });
  }
  return Answer::kYes;
}

void ShellReader::keep(ShellCommand command) {
  std::vector<ShellWord>& words = command.words;
  if (words[0].text == "eval") {
    std::string text;
    for (const ShellWord& word : std::span(words).subspan(1)) {
      text += word.text + " ";
    }
    read_inside(text, words[0].line, launcher_);
    return;
  }
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    const std::string_view shell = base_name(words[i].text), flag = words[i + 1].text;
    if ((shell == "bash" || shell == "sh") && flag.size() > 1 && flag[0] == '-' && flag[1] != '-' &&
        flag.ends_with('c')) {
      std::vector<ShellWord> launcher = launcher_;
      launcher.insert(launcher.end(), words.begin(),
                      words.begin() + static_cast<std::ptrdiff_t>(i));
      read_inside(words[i + 2].text, words[i + 2].line, std::move(launcher));
      return;
    }
  }
  words.insert(words.begin(), launcher_.begin(), launcher_.end());
  const auto first_of = [&](const std::string& name) {
    const std::optional<Value> value = value_of(name);
    return value && !value->items.empty() ? value->items.front().text : "";
  };
  command.slurm_tasks = first_of("SLURM_NTASKS");
  command.slurm_nodes = first_of("SLURM_NNODES");
  script_.commands.push_back(std::move(command));
}

void ShellReader::read_inside(const std::string& text, std::size_t line,
                              std::vector<ShellWord> launcher) {
  variables().spend(text.size(), file_, line);
  if (depth_ > kMaxInside) {
    throw Error("scripts stand inside each other too deeply").at(file_, line);
  }
  ShellReader(lex_shell(text, file_, line), file_, script_, functions_, std::move(launcher),
              depth_ + 8)
      .run();
}

ShellScript read_shell_script(std::string_view text, const std::string& file,
                              const ShellVariables& given) {
  if (text.size() > kMaxText) {
    throw Error("a script of more than 1 MiB").at(file);
  }
  std::string clean(text);
  std::ranges::replace_if(
      clean,
      [](char c) { return c == ShellVariables::kMarkBegin || c == ShellVariables::kMarkEnd; }, '?');
  ShellScript script;
  script.variables = given;
  set_slurm_variables(clean, script.variables);
  ShellFunctions functions;
  ShellReader(lex_shell(clean, file), file, script, functions, {}, 0).run();
  for (const auto& [name, function] : functions) {
    const ShellToken* const program = function.called ? nullptr : program_among(function.body);
    if (program != nullptr && script.left_out.line == 0) {
      script.left_out = {program->line, "nothing here calls the function around it"};
    }
  }
  return script;
}

}  // namespace lockstep
