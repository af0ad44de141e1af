#include "generator/megatron_args/slurm_lines.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
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

/// What every batch job has, whatever its lines say; the number of nodes, too, if they do not.
constexpr std::string_view kOfEveryJob =
    "SLURM_JOB_ID SLURM_JOBID SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_NODELIST SLURM_NNODES "
    "SLURM_JOB_NUM_NODES SLURM_JOB_PARTITION SLURM_JOB_USER SLURM_JOB_ACCOUNT SLURM_CLUSTER_NAME "
    "SLURM_SUBMIT_DIR SLURM_SUBMIT_HOST SLURM_TASKS_PER_NODE SLURM_JOB_CPUS_PER_NODE "
    "SLURM_CPUS_ON_NODE SLURM_NODEID SLURM_PROCID SLURM_LOCALID SLURMD_NODENAME";

void set_missing(ShellVariables& variables, std::string_view names, const std::string& value,
                 std::size_t line) {
  for (const std::string_view name : split_blanks(names)) {
    if (!variables.values.contains(name)) {
      variables.set(name, value, line);
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

/// The GPUs in "gpu:8", "gpu:a100:8(S:0-1),nvme:1" or "gpu"; empty: none.
std::string_view gpus_of(std::string_view resources) {
  while (!resources.empty()) {
    const std::size_t end = std::min(resources.find(','), resources.size());
    std::string_view each = resources.substr(0, end);
    resources.remove_prefix(std::min(end + 1, resources.size()));
    each = each.substr(0, each.find('('));
    each.remove_prefix(each.starts_with("gres/") ? 5 : 0);
    if (each == "gpu") {
      return "1";
    }
    if (each.starts_with("gpu:")) {
      return each.substr(each.rfind(':') + 1);
    }
  }
  return {};
}

}  // namespace

void set_slurm_variables(std::string_view text, ShellVariables& variables) {
  std::map<const SlurmOption*, std::pair<std::int64_t, std::size_t>>
      told;  // the last, and its line
  std::size_t number_of_line = 0, first_line = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::vector<std::string_view> words = split_blanks(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number_of_line;
    if (!words.empty() && !words[0].starts_with('#')) {
      break;
    }
    if (words.size() < 2 || words[0] != "#SBATCH") {
      continue;
    }
    first_line = first_line == 0 ? number_of_line : first_line;
    for (std::size_t i = 1; i < words.size() && !words[i].starts_with('#'); ++i) {
      const std::string_view next = i + 1 < words.size() ? words[i + 1] : std::string_view();
      for (const SlurmOption& option : kOptions) {
        std::string_view value = value_of(option, words[i], next);
        value = option.flag == "--gres" ? gpus_of(value) : value.substr(value.rfind(':') + 1);
        if (const std::optional<std::int64_t> count = to_int(value)) {
          told[&option] = {*count, number_of_line};
        }
      }
    }
  }
  for (const SlurmOption& option : kOptions) {
    if (const auto found = told.find(&option); found != told.end()) {
      set_missing(variables, option.variables, std::to_string(found->second.first),
                  found->second.second);
    }
  }
  const std::optional<std::int64_t> nodes = number(variables, "SLURM_NNODES");
  const std::optional<std::int64_t> tasks = number(variables, "SLURM_NTASKS_PER_NODE");
  std::int64_t total = 0;
  if (nodes && tasks && !__builtin_mul_overflow(*nodes, *tasks, &total)) {
    set_missing(variables, "SLURM_NTASKS SLURM_NPROCS", std::to_string(total), 0);
  }
  for (const std::string_view name : split_blanks(first_line > 0 ? kOfEveryJob : "")) {
    set_missing(variables, name,
                variables.mark({.what = "$" + std::string(name), .line = first_line, .words = 1}),
                first_line);
  }
}

}  // namespace lockstep
