#include "generator/megatron_args/megatron_launch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_lexer.h"
#include "generator/megatron_args/shell_script.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxValue = std::int64_t{1} << 40;

bool is_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
}

bool has_flag(const std::vector<ShellWord>& words, std::string_view name) {
  return std::ranges::any_of(words, [&](const ShellWord& word) {
    return word.text.starts_with("--") &&
           flag_name(std::string_view(word.text).substr(0, word.text.find('='))) == name;
  });
}

std::size_t program_of(const std::vector<ShellWord>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].text.ends_with(".py")) {
      return i;
    }
  }
  return words.size();
}

/// A program's output, not a variable.
bool is_output(const ShellUnknown& unknown) { return !is_shell_name(unknown.what.substr(1)); }

bool is_shown(const ShellCommand& command) {
  return command.words[0].text == "echo" || command.words[0].text == "printf";
}

bool starts_training(const ShellCommand& command) {
  return !is_shown(command) && has_flag(command.words, "num-layers") &&
         !command.words[0].text.starts_with("--");
}

/// The command that trains: the first with --num-layers that is not just shown; else the last that
/// starts a program.
const ShellCommand* training_command(const std::vector<ShellCommand>& commands) {
  const ShellCommand* last = nullptr;
  for (const ShellCommand& command : commands) {
    if (starts_training(command)) {
      return &command;
    }
    const bool program = program_of(command.words) + 1 < command.words.size();
    last = program && !is_shown(command) ? &command : last;
  }
  return last;
}

}  // namespace

MegatronLaunch MegatronLaunch::parse(std::string_view text, const std::string& file,
                                     const ShellVariables& given) {
  if (is_training_log(text)) {
    if (!given.values.empty()) {
      throw Error("a log has no variables").at(file).field("--set").expected("a script beside it");
    }
    return of_log(text, file);
  }
  ShellScript script = read_shell_script(text, file, given);
  MegatronLaunch launch;
  launch.file_ = file;
  launch.warnings_ = std::move(script.warnings);
  launch.variables_ = std::move(script.variables);
  launch.left_out_ = std::move(script.left_out);
  const ShellCommand* command = training_command(script.commands);
  std::vector<ShellWord> loose;  // lines of flags that belong to no command
  for (const ShellCommand& each : script.commands) {
    if (each.words[0].text.starts_with("--")) {
      loose.insert(loose.end(), each.words.begin(), each.words.end());
    }
  }
  if (command != nullptr) {
    const auto others = std::ranges::count_if(script.commands, starts_training) - 1;
    if (others > 0) {
      launch.warnings_.add(fmt::format("{}:{}: the first of {} trainings is taken", file,
                                       command->line, others + 1));
    }
    if (!loose.empty()) {
      launch.warnings_.add(
          fmt::format("{}:{}: this line belongs to no command, so that it is left out: is a '\\' "
                      "missing at the end of the line before?",
                      file, loose.front().line));
    }
    launch.line_ = command->line;
    launch.launcher_ = {{}, command->slurm_tasks, command->slurm_nodes, command->line};
    const std::size_t program = program_of(command->words);
    const bool named = program < command->words.size();
    if (named) {
      launch.program_ = command->words[program].text;
      launch.launcher_.words.assign(command->words.begin(),
                                    command->words.begin() + static_cast<std::ptrdiff_t>(program));
    }
    launch.take_flags(command->words, named ? program + 1 : 0);
  } else if (!loose.empty()) {
    launch.line_ = loose.front().line;
    launch.take_flags(loose, 0);
  } else {
    throw Error("no command here starts a training")
        .at(file)
        .expected(
            "a command such as 'torchrun … pretrain_gpt.py --num-layers 32 …', or lines of "
            "such flags alone")
        .hint(launch.hidden());
  }
  return launch;
}

void MegatronLaunch::take_flags(const std::vector<ShellWord>& words, std::size_t first) {
  Flag* open = nullptr;
  for (std::size_t i = first; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    const ShellUnknown* const hidden = hidden_in(word);
    const bool value =
        hidden != nullptr && is_output(*hidden) && open != nullptr && open->values.empty();
    if (hidden != nullptr && !value) {
      hidden_.push_back(word);
    }
    if (hidden != nullptr && (open == nullptr || hidden->addition)) {
      warn_of(*hidden, warnings_);
    } else if (is_flag(word.text)) {
      const std::size_t equals = word.text.find('=');
      open = &flags_[flag_name(std::string_view(word.text).substr(0, equals))];
      *open = {{}, word.line};
      if (equals != std::string::npos) {
        open->values.push_back({word.text.substr(equals + 1), word.line});
        open = nullptr;
      }
    } else if (open != nullptr) {
      open->values.push_back(word);
    } else if (!variables_.is_nothing(word.text)) {
      warnings_.add(fmt::format("{}:{}: '{}' belongs to no flag", file_, word.line,
                                variables_.unknown_in(word.text) != nullptr
                                    ? variables_.unknown_in(word.text)->what
                                    : printable(word.text)));
    }
  }
}

/// What is not known of a word that is nothing else and was not quoted, so that it may be flags.
const ShellUnknown* MegatronLaunch::hidden_in(const ShellWord& word) const {
  const bool alone = word.loose && word.text.front() == ShellVariables::kMarkBegin &&
                     word.text.find(ShellVariables::kMarkEnd) + 1 == word.text.size();
  const ShellUnknown* const unknown = alone ? variables_.unknown_in(word.text) : nullptr;
  return unknown != nullptr && !unknown->unset ? unknown : nullptr;
}

void MegatronLaunch::warn_of(const ShellUnknown& unknown, Warnings& warnings) const {
  warnings.add(fmt::format(
      "{}:{}: what {} is not known: flags among it are passed over", file_, unknown.line,
      unknown.addition ? "this adds to " + unknown.what : unknown.what + " holds"));
}

Warnings MegatronLaunch::hidden_words() const {
  Warnings warnings;
  for (const auto& [name, flag] : flags_) {
    for (const ShellWord& word : flag.values) {
      const ShellUnknown* const hidden = hidden_in(word);
      const bool first = &word == &flag.values.front();
      // The value of a flag that nobody reads, where it is a program's output, is just that.
      const bool value = valued_.contains(name) ||
                         (!seen_.contains(name) && hidden != nullptr && is_output(*hidden));
      if (hidden != nullptr && !(first && value)) {
        warn_of(*hidden, warnings);
      }
    }
  }
  return warnings;
}

std::string MegatronLaunch::hidden() const {
  std::string text;
  if (const ShellUnknown* const unknown = hidden_.empty() ? nullptr : hidden_in(hidden_.front())) {
    text = fmt::format("what {} holds is not known ({}:{})", unknown->what, file_, unknown->line);
  }
  if (left_out_.line > 0) {
    text += fmt::format("{}the program that {}:{} starts is left out: {}", text.empty() ? "" : "; ",
                        file_, left_out_.line, left_out_.why);
  }
  return text;
}

void MegatronLaunch::pass_over(std::string_view name) const {
  seen_.insert(std::string(name));
  valued_.insert(std::string(name));
}

bool MegatronLaunch::has(std::string_view name) const {
  seen_.insert(std::string(name));
  return flags_.find(name) != flags_.end();
}

std::size_t MegatronLaunch::line_of(std::string_view name) const {
  const auto found = flags_.find(name);
  return found == flags_.end() ? 0 : found->second.line;
}

std::string MegatronLaunch::known(const ShellWord& word, std::string_view field,
                                  std::string_view instead) const {
  return known_word(word, field, instead, file_, variables_);
}

std::optional<std::string> MegatronLaunch::text(std::string_view name,
                                                std::string_view instead) const {
  valued_.insert(std::string(name));
  if (!has(name)) {
    return std::nullopt;
  }
  const Flag& flag = flags_.find(name)->second;
  const std::string field = fmt::format("--{}", name);
  if (flag.values.empty()) {
    throw Error("this flag needs a value").at(file_, flag.line).field(field);
  }
  return known(flag.values.front(), field, instead);
}

std::optional<std::string> MegatronLaunch::choice(std::string_view name,
                                                  std::initializer_list<std::string_view> known,
                                                  std::string_view instead) const {
  std::optional<std::string> value = text(name, instead);
  if (value && std::ranges::find(known, *value) == known.end()) {
    const std::string_view near = closest(*value, known);
    throw Error(fmt::format("unknown value '{}'", printable(*value)))
        .at(file_, line_of(name))
        .field(fmt::format("--{}", name))
        .expected(join(known, ", "))
        .hint(near.empty() ? std::string() : fmt::format("did you mean '{}'?", near));
  }
  return value;
}

std::optional<std::string> MegatronLaunch::joined(std::string_view name) const {
  valued_.insert(std::string(name));
  if (!has(name)) {
    return std::nullopt;
  }
  std::string all;
  for (const ShellWord& word : flags_.find(name)->second.values) {
    all += (all.empty() ? "" : " ") + known(word, fmt::format("--{}", name), {});
  }
  return all;
}

std::optional<std::int64_t> MegatronLaunch::whole(std::string_view name, std::int64_t low,
                                                  std::string_view instead) const {
  const std::optional<std::string> value = text(name, instead);
  if (!value) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> count = to_int(*value);
  if (!count || *count < low || *count > kMaxValue) {
    throw Error(
        fmt::format("'{}' is no whole number from {} to {}", printable(*value), low, kMaxValue))
        .at(file_, line_of(name))
        .field(fmt::format("--{}", name));
  }
  return count;
}

std::optional<double> MegatronLaunch::number(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  if (!value) {
    return std::nullopt;
  }
  const std::optional<double> number = to_double(*value);
  if (!number) {
    throw Error(fmt::format("'{}' is no number", printable(*value)))
        .at(file_, line_of(name))
        .field(fmt::format("--{}", name));
  }
  return number;
}

std::optional<std::int64_t> MegatronLaunch::processes() const {
  return logged_ ? whole("world-size", 1, "gpus")
                 : launched_processes(launcher_, file_, variables_);
}

std::vector<std::string> MegatronLaunch::unread() const {
  std::vector<std::string> names;
  if (logged_) {
    return names;
  }
  for (const auto& [name, flag] : flags_) {
    if (seen_.find(name) == seen_.end()) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace lockstep
