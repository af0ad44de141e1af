#include "trace/launch_line.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace lockstep {
namespace {

std::int32_t count_in(std::string_view text) {
  const auto value = to_int(text);
  return value && *value > 0 && *value < (1 << 24) ? static_cast<std::int32_t>(*value) : 0;
}

/// The text of an option: "-np 16", "--nnodes=2"; of a short one also "-N16". Empty: not there.
std::string_view option(const std::vector<std::string_view>& words, std::size_t begin,
                        std::string_view name) {
  for (std::size_t i = begin; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) {
      return words[i + 1];
    }
    if (!words[i].starts_with(name)) {
      continue;
    }
    const std::string_view rest = words[i].substr(name.size());
    if (rest.starts_with('=')) {
      return rest.substr(1);
    }
    if (!name.starts_with("--") && count_in(rest) > 0) {
      return rest;
    }
  }
  return {};
}

/// "ppr:8:node", of --map-by: the processes of a server.
std::int32_t mapped_per_server(std::string_view map_by) {
  const auto parts = split(map_by, ':');
  return parts.size() >= 3 && parts[0] == "ppr" && parts[2] == "node" ? count_in(parts[1]) : 0;
}

/// The lists of hosts: "-H h1:8,h2:8", of which there may be several.
std::vector<std::string_view> listed_hosts(const std::vector<std::string_view>& words,
                                           std::size_t begin) {
  std::vector<std::string_view> hosts;
  const auto take = [&](std::string_view list) {
    for (const std::string_view host : split(list, ',')) {
      if (!host.empty()) {
        hosts.push_back(host);
      }
    }
  };
  for (std::size_t i = begin; i < words.size(); ++i) {
    for (const std::string_view name : {"-H", "-host", "--host"}) {
      if (words[i] == name && i + 1 < words.size()) {
        take(words[i + 1]);
      } else if (words[i].starts_with(name) && words[i].substr(name.size()).starts_with('=')) {
        take(words[i].substr(name.size() + 1));
      }
    }
  }
  return hosts;
}

/// Programs that start the one they are given, whose own options are no launcher's.
bool is_wrapper(std::string_view name) {
  constexpr std::array<std::string_view, 17> kWrappers = {
      "numactl", "taskset", "singularity", "apptainer", "docker", "podman", "env", "bash",   "sh",
      "nsys",    "ncu",     "nice",        "timeout",   "stdbuf", "time",   "gdb", "python3"};
  return std::ranges::find(kWrappers, name) != kWrappers.end();
}

/// Of a path, with a quote before it where a shell is given the line.
std::string_view name_of_program(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of("\"'"), word.size()));
  return word.substr(word.rfind('/') + 1);
}

/// "h1:8", "[fe80::1]:8": processes take the slots in order, of which a host has one where it tells
/// none, or the hosts in turn (`by_node`). Where the processes are not told there are as many as
/// slots; where the slots are too few they are on all hosts.
void take_hosts(const std::vector<std::string_view>& list, bool by_node, LaunchLine& launch) {
  std::set<std::string_view> hosts;
  std::int64_t slots = 0;
  for (const std::string_view host : list) {
    const std::int64_t taken = by_node ? std::ssize(hosts) : slots;
    if (launch.processes > 0 && taken >= launch.processes) {
      break;
    }
    const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
    const std::size_t colon = host.find(':', std::min(bracket, host.size()));
    const std::int32_t told =
        colon == std::string_view::npos ? 0 : count_in(host.substr(colon + 1));
    slots += std::max(1, told);
    hosts.insert(host.substr(0, colon));
  }
  launch.servers = static_cast<std::int32_t>(hosts.size());
  if (launch.processes == 0 && slots < (1 << 24)) {
    launch.processes = static_cast<std::int32_t>(slots);
  }
}

/// Whether the word behind it is its value, which may be called as a program: a variable, a folder.
bool takes_a_name(std::string_view option) {
  constexpr std::array<std::string_view, 11> kOptions = {"-x",      "--prefix", "-prefix", "-wdir",
                                                         "--wdir",  "-wd",      "-path",   "--path",
                                                         "--chdir", "-D",       "--export"};
  return std::ranges::find(kOptions, option) != kOptions.end();
}

/// Leaves a launcher's own words, behind `launcher`.
void end_at_wrapper(std::vector<std::string_view>& words, std::size_t launcher) {
  for (std::size_t i = launcher + 1; i < words.size(); ++i) {
    const bool own = words[i].find('=') != std::string_view::npos || takes_a_name(words[i - 1]);
    if (!own && is_wrapper(name_of_program(words[i]))) {
      words.resize(i);
    }
  }
}

bool is_launcher(std::string_view name) {
  return name == "mpirun" || name == "mpiexec" || name == "mpiexec.hydra" || name == "prterun" ||
         name == "srun" || name == "torchrun";
}

/// "all_reduce_perf" of "./build/all_reduce_perf"; empty: another word.
std::string_view nccl_program(std::string_view word) {
  const std::size_t perf = word.find("_perf");
  const std::string_view behind =
      perf == std::string_view::npos ? "." : word.substr(perf + 5);  // "all_reduce_perf_mpi"
  return behind.empty() || behind == "_mpi" ? name_of_program(word) : std::string_view();
}

/// "$", "+", "root@node1:~#", "NCCL_ALGO=Ring", "&&": a command may stand behind it.
bool precedes_command(std::string_view word) {
  return word.find_first_not_of('+') == std::string_view::npos || word == "&&" || word == "||" ||
         word.find('=') != std::string_view::npos ||
         std::string_view("$#%;").find(word.back()) != std::string_view::npos;
}

/// "-b", "--minbytes": sizes and counts of nccl-tests, which compilers do not have.
bool is_nccl_option(std::string_view word) {
  constexpr std::string_view kShort = "befgintw";
  return word.starts_with("--") ||
         (word.size() == 2 && word[0] == '-' && kShort.find(word[1]) != std::string_view::npos);
}

}  // namespace

std::string_view started_program(const std::vector<std::string_view>& words) {
  std::string_view program;
  bool starts = false, launched = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = nccl_program(words[i]);
    if (name.empty()) {
      const std::string_view other = name_of_program(words[i]);
      launched = launched || is_launcher(other) || is_wrapper(other) || other == "sudo";
      continue;
    }
    if (!program.empty() && program != name) {
      return {};
    }
    program = name;
    starts = starts || launched || i == 0 || precedes_command(words[i - 1]) ||
             (i + 1 < words.size() && is_nccl_option(words[i + 1]));
  }
  return starts ? program : std::string_view();
}

LaunchLine launch_line(std::string_view line) {
  std::vector<std::string_view> words = split_blanks(line);
  if (std::ranges::find(words, ":") != words.end()) {
    return {};  // several programs, each with processes and hosts of its own
  }
  // The program's own options begin behind it.
  const auto program = std::ranges::find_if(
      words, [](std::string_view word) { return word.find("_perf") != std::string_view::npos; });
  const auto own = static_cast<std::size_t>(program - words.begin()) + 1;
  std::int64_t process_gpus = 0;
  for (const auto& [brief, whole] : {std::pair{"-g", "--ngpus"}, {"-t", "--nthreads"}}) {
    const std::int32_t value =
        std::max(count_in(option(words, own, brief)), count_in(option(words, own, whole)));
    process_gpus = value > 0 ? std::max<std::int64_t>(1, process_gpus) * value : process_gpus;
  }
  LaunchLine launch;
  launch.process_gpus = process_gpus < 4096 ? static_cast<std::int32_t>(process_gpus) : 0;
  words.erase(program, words.end());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = name_of_program(words[i]);
    const auto first = [&](std::initializer_list<std::string_view> names) {
      for (const std::string_view each : names) {
        if (const std::int32_t value = count_in(option(words, i + 1, each)); value > 0) {
          return value;
        }
      }
      return 0;
    };
    std::int32_t& each = launch.processes_per_server;
    if (name == "mpirun" || name == "mpiexec" || name == "mpiexec.hydra" || name == "prterun") {
      end_at_wrapper(words, i);
      launch.processes = first({"-np", "-n", "--np"});
      each = first({"-N", "-npernode", "--npernode", "-ppn", "--ppn"});
      const std::string_view map_by = option(words, i + 1, "--map-by");
      each = each > 0 ? each : mapped_per_server(map_by);
      const auto has = [&](std::initializer_list<std::string_view> names) {
        return std::ranges::any_of(words, [&](std::string_view word) {
          return std::ranges::find(names, word.substr(0, word.find('='))) != names.end();
        });
      };
      const bool by_node = has({"-bynode", "--bynode"}) || split(map_by, ':')[0] == "node";
      each = each == 0 && has({"-pernode", "--pernode"}) ? 1 : each;
      // By a file of ranks, or so many to a socket, of which a server has any number.
      const bool otherwise =
          has({"-rf", "-rankfile", "--rankfile", "-npersocket", "--npersocket"}) ||
          map_by.starts_with("rankfile") || map_by.starts_with("ppr:");
      if (each == 0 && !otherwise) {
        take_hosts(listed_hosts(words, i + 1), by_node, launch);
      }
      if (each > 0 && each < 4096 && launch.processes == 0) {
        take_hosts(listed_hosts(words, i + 1), true, launch);
        launch.processes = each * launch.servers;
      }
    } else if (name == "srun") {
      end_at_wrapper(words, i);
      launch.processes = first({"-n", "--ntasks"});
      launch.servers = first({"-N", "--nodes"});
      each = first({"--ntasks-per-node"});
    } else if (name == "torchrun") {
      launch.servers = first({"--nnodes"});
      each = first({"--nproc-per-node", "--nproc_per_node"});
      launch.servers = each > 0 ? std::max(1, launch.servers) : launch.servers;
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
  return launch;
}

}  // namespace lockstep
