#include "generator/megatron_args/megatron_launch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_script.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxValue = std::int64_t{1} << 40;

bool is_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
}

std::string flag_name(std::string_view word) {
  std::string name(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::ranges::replace(name, '_', '-');
  return name;
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

/// The command that trains: the first with --num-layers that is not just shown; else the last that
/// starts a program.
const ShellCommand* training_command(const std::vector<ShellCommand>& commands) {
  const ShellCommand* last = nullptr;
  for (const ShellCommand& command : commands) {
    if (command.words[0].text == "echo" || command.words[0].text == "printf") {
      continue;
    }
    const bool program = program_of(command.words) + 1 < command.words.size();
    if (has_flag(command.words, "num-layers") && !command.words[0].text.starts_with("--")) {
      return &command;
    }
    last = program ? &command : last;
  }
  return last;
}

}  // namespace

MegatronLaunch MegatronLaunch::parse(std::string_view text, const std::string& file,
                                     const ShellVariables& given) {
  ShellScript script = read_shell_script(text, file, given);
  MegatronLaunch launch;
  launch.file_ = file;
  launch.warnings_ = std::move(script.warnings);
  launch.variables_ = std::move(script.variables);
  const ShellCommand* command = training_command(script.commands);
  std::vector<ShellWord> loose;  // lines of flags that belong to no command
  for (const ShellCommand& each : script.commands) {
    if (each.words[0].text.starts_with("--")) {
      loose.insert(loose.end(), each.words.begin(), each.words.end());
    }
  }
  if (command != nullptr) {
    if (!loose.empty()) {
      launch.warnings_.add(
          fmt::format("{}:{}: this line belongs to no command, so that it is left out: is a '\\' "
                      "missing at the end of the line before?",
                      file, loose.front().line));
    }
    launch.line_ = command->line;
    launch.slurm_tasks_ = command->slurm_tasks;
    const std::size_t program = program_of(command->words);
    const bool named = program < command->words.size();
    if (named) {
      launch.program_ = command->words[program].text;
      launch.launcher_.assign(command->words.begin(),
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
            "such flags alone");
  }
  return launch;
}

void MegatronLaunch::take_flags(const std::vector<ShellWord>& words, std::size_t first) {
  Flag* open = nullptr;
  for (std::size_t i = first; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    if (is_flag(word.text)) {
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
  const ShellUnknown* unknown = variables_.unknown_in(word.text);
  if (unknown == nullptr) {
    return word.text;
  }
  std::string hint;
  if (unknown->unset) {
    const std::size_t begin = unknown->what.find_first_not_of("${");
    const std::string name = unknown->what.substr(
        begin, unknown->what.find_first_of(":}[", begin) - std::min(begin, unknown->what.size()));
    hint = fmt::format("--set {}=…", name);
  }
  if (!instead.empty()) {
    hint += fmt::format("{}--{} in its place", hint.empty() ? "" : ", or ", instead);
  }
  throw Error(unknown->unset
                  ? fmt::format("{} is not set", unknown->what)
                  : fmt::format("{} is not known without running the script", unknown->what))
      .at(file_, unknown->line > 0 ? unknown->line : word.line)
      .field(field)
      .hint(hint);
}

std::optional<std::string> MegatronLaunch::text(std::string_view name,
                                                std::string_view instead) const {
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

/// The value of a launcher's flag ("nnodes", "np"; one letter: exactly "-N").
std::optional<std::int64_t> MegatronLaunch::launcher_count(std::string_view name) const {
  for (std::size_t i = 0; i < launcher_.size(); ++i) {
    const std::string& word = launcher_[i].text;
    const std::size_t equals = word.find('=');
    const bool glued = name.size() == 1 && word.size() > 2 && word[0] == '-' &&
                       word[1] == name[0] &&
                       word.find_first_not_of("0123456789", 2) == std::string::npos;  // -n16
    if (word[0] != '-' || (!glued && flag_name(std::string_view(word).substr(0, equals)) != name)) {
      continue;
    }
    ShellWord value = launcher_[i];
    if (glued) {
      value.text = word.substr(2);
    } else if (equals != std::string::npos) {
      value.text = word.substr(equals + 1);
    } else if (i + 1 < launcher_.size()) {
      value = launcher_[i + 1];
    } else {
      throw Error("this flag needs a value").at(file_, value.line).field(word);
    }
    const std::string field = word.substr(0, equals);
    const std::string text = known(value, field, "gpus");
    const std::optional<std::int64_t> count = to_int(text);
    if (!count || *count < 1 || *count > kMaxValue) {
      throw Error(fmt::format("'{}' does not say how many", printable(text)))
          .at(file_, value.line)
          .field(field)
          .hint("--gpus N in its place");
    }
    return count;
  }
  return std::nullopt;
}

std::optional<std::int64_t> MegatronLaunch::processes() const {
  const auto times = [&](std::optional<std::int64_t> a,
                         std::optional<std::int64_t> b) -> std::optional<std::int64_t> {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a.value_or(1), b.value_or(1), &product)) {
      throw Error("more processes than can be counted").at(file_, line_);
    }
    return product;
  };
  if (const auto each = launcher_count("nproc-per-node")) {  // torchrun, torch.distributed.launch
    return times(each, launcher_count("nnodes"));
  }
  if (const auto each = launcher_count("num-gpus")) {  // deepspeed
    return times(each, launcher_count("num-nodes"));
  }
  for (const std::string_view name : {"np", "n", "ntasks"}) {  // mpirun, srun
    if (const auto all = launcher_count(name)) {
      return all;
    }
  }
  if (const auto each = launcher_count("ntasks-per-node")) {
    const auto nodes = launcher_count("nodes");
    return times(each, nodes ? nodes : launcher_count("N"));
  }
  const bool slurm = std::ranges::any_of(
      launcher_, [](const ShellWord& word) { return word.text.ends_with("srun"); });
  return slurm ? to_int(slurm_tasks_) : std::nullopt;
}

std::vector<std::string> MegatronLaunch::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, flag] : flags_) {
    if (seen_.find(name) == seen_.end()) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace lockstep
