#include "generator/megatron_args/slurm_lines.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace lockstep {
namespace {

struct SlurmOption {
  std::string_view flag;       ///< "--nodes"
  std::string_view letter;     ///< "-N"; empty: none
  std::string_view variables;  ///< separated by blanks
};
constexpr auto kOptions = std::to_array<SlurmOption>({
    {"--nodes", "-N", "SLURM_NNODES SLURM_JOB_NUM_NODES"},
    {"--ntasks-per-node", "", "SLURM_NTASKS_PER_NODE"},
    {"--ntasks", "-n", "SLURM_NTASKS SLURM_NPROCS"},
    {"--gpus-per-node", "", "SLURM_GPUS_PER_NODE SLURM_GPUS_ON_NODE"},
    {"--gres", "", "SLURM_GPUS_ON_NODE"},
});

void set_missing(ShellVariables& variables, std::string_view names, std::int64_t value,
                 std::size_t line) {
  for (const std::string_view name : split_blanks(names)) {
    if (!variables.values.contains(name)) {
      variables.set(name, std::to_string(value), line);
    }
  }
}

std::optional<std::int64_t> number(const ShellVariables& variables, std::string_view name) {
  const auto found = variables.values.find(name);
  return found == variables.values.end() || found->second.items.empty()
             ? std::nullopt
             : to_int(found->second.items.front().text);
}

/// What `word` gives `option`, as --nodes=4, --nodes 4, -N 4 or -N4; empty: nothing.
std::string_view value_of(const SlurmOption& option, std::string_view word, std::string_view next) {
  if (word == option.flag || (!option.letter.empty() && word == option.letter)) {
    return next;
  }
  const bool letter = !option.letter.empty() && word.starts_with(option.letter);
  const bool flag =
      word.starts_with(option.flag) && word.substr(option.flag.size()).starts_with("=");
  return letter ? word.substr(option.letter.size())
         : flag ? word.substr(option.flag.size() + 1)
                : std::string_view();
}

}  // namespace

void set_slurm_variables(std::string_view text, ShellVariables& variables) {
  std::size_t number_of_line = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::vector<std::string_view> words = split_blanks(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number_of_line;
    if (words.size() < 2 || words[0] != "#SBATCH") {
      continue;
    }
    for (std::size_t i = 1; i < words.size() && !words[i].starts_with('#'); ++i) {
      const std::string_view next = i + 1 < words.size() ? words[i + 1] : std::string_view();
      for (const SlurmOption& option : kOptions) {
        std::string_view value = value_of(option, words[i], next);
        value = value.substr(value.rfind(':') + 1);  // gpu:8, a100:8
        if (const std::optional<std::int64_t> count = to_int(value)) {
          set_missing(variables, option.variables, *count, number_of_line);
        }
      }
    }
  }
  const std::optional<std::int64_t> nodes = number(variables, "SLURM_NNODES");
  const std::optional<std::int64_t> tasks = number(variables, "SLURM_NTASKS_PER_NODE");
  std::int64_t total = 0;
  if (nodes && tasks && !__builtin_mul_overflow(*nodes, *tasks, &total)) {
    set_missing(variables, "SLURM_NTASKS SLURM_NPROCS", total, 0);
  }
}

}  // namespace lockstep
