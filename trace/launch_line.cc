#include "trace/launch_line.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace lockstep {
namespace {

/// The value of an option: "-np 16", "--nnodes=2".
std::int32_t option(const std::vector<std::string_view>& words, std::size_t begin,
                    std::string_view name) {
  for (std::size_t i = begin; i < words.size(); ++i) {
    std::optional<std::int64_t> value;
    if (words[i] == name && i + 1 < words.size()) {
      value = to_int(words[i + 1]);
    } else if (words[i].starts_with(name) && words[i].substr(name.size()).starts_with('=')) {
      value = to_int(words[i].substr(name.size() + 1));
    }
    if (value && *value > 0 && *value < (1 << 24)) {
      return static_cast<std::int32_t>(*value);
    }
  }
  return 0;
}

}  // namespace

LaunchLine launch_line(std::string_view line) {
  std::vector<std::string_view> words = split_blanks(line);
  // The program's own options begin behind it.
  const auto program = std::ranges::find_if(
      words, [](std::string_view word) { return word.find("_perf") != std::string_view::npos; });
  words.erase(program, words.end());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = words[i].substr(words[i].rfind('/') + 1);
    const auto first = [&](std::initializer_list<std::string_view> names) {
      for (const std::string_view each : names) {
        if (const std::int32_t value = option(words, i + 1, each); value > 0) {
          return value;
        }
      }
      return 0;
    };
    LaunchLine launch;
    std::int32_t each = 0;
    if (name == "mpirun" || name == "mpiexec" || name == "mpiexec.hydra" || name == "prterun") {
      launch.processes = first({"-np", "-n", "--np"});
      each = first({"-N", "-npernode", "--npernode", "-ppn", "--ppn"});
    } else if (name == "srun") {
      launch.processes = first({"-n", "--ntasks"});
      launch.servers = first({"-N", "--nodes"});
      each = first({"--ntasks-per-node"});
    } else if (name == "torchrun") {
      launch.servers = std::max(1, first({"--nnodes"}));
      each = first({"--nproc-per-node", "--nproc_per_node"});
    } else {
      continue;
    }
    if (launch.processes == 0 && launch.servers > 0 && each < 4096) {
      launch.processes = launch.servers * each;
    }
    if (launch.servers == 0 && each > 0 && launch.processes > 0) {
      launch.servers = (launch.processes + each - 1) / each;
    }
    return launch;
  }
  return {};
}

}  // namespace lockstep
