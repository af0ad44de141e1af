#include "generator/megatron_args/megatron_processes.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

using Words = std::span<const ShellWord>;
using Count = std::optional<std::int64_t>;

constexpr std::int64_t kMaxProcesses = std::int64_t{1} << 40;

/// Those that start a process for each GPU.
constexpr auto kLaunchers =
    std::to_array<std::string_view>({"srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun",
                                     "prterun", "horovodrun", "aprun", "ibrun"});
/// Programs that often stand between a launcher and Python.
constexpr auto kPrograms = std::to_array<std::string_view>(
    {"accelerate", "apptainer",   "bash",    "conda", "deepspeed",  "docker", "enroot",
     "env",        "exec",        "ionice",  "mamba", "micromamba", "ncu",    "nice",
     "nohup",      "nsys",        "numactl", "pixi",  "podman",     "poetry", "setsid",
     "sh",         "singularity", "stdbuf",  "sudo",  "taskset",    "time",   "timeout",
     "torchrun",   "uv",          "xargs"});
/// Options of srun without a value.
constexpr auto kSwitches = std::to_array<std::string_view>({"-l",
                                                            "--label",
                                                            "-u",
                                                            "--unbuffered",
                                                            "-v",
                                                            "--verbose",
                                                            "-Q",
                                                            "--quiet",
                                                            "-s",
                                                            "--oversubscribe",
                                                            "-O",
                                                            "--overcommit",
                                                            "--overlap",
                                                            "--exclusive",
                                                            "--exact",
                                                            "--pty",
                                                            "-k",
                                                            "--no-kill",
                                                            "-K",
                                                            "--kill-on-bad-exit",
                                                            "-E",
                                                            "--preserve-env",
                                                            "--no-container-mount-home",
                                                            "--container-writable"});
/// Options of MPI's launchers with two values.
constexpr auto kTwoValues = std::to_array<std::string_view>(
    {"--mca", "-mca", "--gmca", "-gmca", "--prtemca", "--pmixmca", "-genv", "-env"});

template <std::size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view word) {
  return std::ranges::find(names, word) != names.end();
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_option(std::string_view word) { return word.starts_with('-'); }

/// -n16: the letter and a number.
bool is_glued(std::string_view word) {
  return word.size() > 2 && word[0] == '-' && word[1] != '-' &&
         word.find_first_not_of("0123456789", 2) == std::string_view::npos;
}

/// Whether the program that a launcher starts is words[i]: nothing that stands behind an option as
/// its value.
bool is_program(Words words, std::size_t i) {
  const std::string_view word = words[i].text, before = words[i - 1].text;
  if (is_option(word)) {
    return false;
  }
  const std::string_view name = base_name(word);
  if (is_one_of(kPrograms, name) || name.starts_with("python")) {
    return true;
  }
  const bool value = is_option(before) && before.find('=') == std::string_view::npos &&
                     !is_glued(before) && !is_one_of(kSwitches, before);
  return !value && !(i > 1 && is_one_of(kTwoValues, words[i - 2].text));
}

/// A launcher with its own options: up to the program that it starts.
Words own_words(Words words) {
  const auto begin = std::ranges::find_if(
      words, [](const ShellWord& word) { return is_one_of(kLaunchers, base_name(word.text)); });
  Words own = words.subspan(static_cast<std::size_t>(begin - words.begin()));
  for (std::size_t i = 1; i < own.size(); ++i) {
    if (is_program(own, i)) {
      return own.first(i);
    }
  }
  return own;
}

class Launcher {
 public:
  Launcher(const MegatronLauncher& launcher, const std::string& file,
           const ShellVariables& variables)
      : launcher_(launcher), file_(file), variables_(variables) {}

  Count processes() const {
    const Words all = launcher_.words, own = own_words(all);
    if (const Count each = count(all, "nproc-per-node")) {  // torchrun, torch.distributed.launch
      return times(*each, count(all, "nnodes").value_or(1));
    }
    if (const Count each = count(all, "num-gpus")) {  // deepspeed
      return times(*each, count(all, "num-nodes").value_or(1));
    }
    for (const std::string_view name : {"np", "n", "ntasks"}) {  // mpirun, srun
      if (const Count total = count(own, name)) {
        return total;
      }
    }
    if (own.empty() || base_name(own[0].text) != "srun") {
      return std::nullopt;
    }
    const Count each = count(own, "ntasks-per-node");
    const Count told = each ? count(own, "nodes") : std::nullopt;
    const Count letter = each && !told ? count(own, "N") : told;
    const Count nodes = letter ? letter : to_int(launcher_.slurm_nodes);
    return each && nodes ? times(*each, *nodes) : to_int(launcher_.slurm_tasks);
  }

 private:
  Count times(std::int64_t a, std::int64_t b) const {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) {
      throw Error("more processes than can be counted").at(file_, launcher_.line);
    }
    return product;
  }

  /// The value of a flag ("nnodes", "np"; one letter: exactly "-N"); of several the last.
  Count count(Words words, std::string_view name) const {
    Count last;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i].text;
      const std::size_t equals = word.find('=');
      const bool glued = name.size() == 1 && is_glued(word) && word[1] == name[0];
      if (!is_option(word) ||
          (!glued && flag_name(std::string_view(word).substr(0, equals)) != name)) {
        continue;
      }
      ShellWord value = words[i];
      if (glued) {
        value.text = word.substr(2);
      } else if (equals != std::string::npos) {
        value.text = word.substr(equals + 1);
      } else if (i + 1 < words.size()) {
        value = words[i + 1];
      } else {
        throw Error("this flag needs a value").at(file_, value.line).field(word);
      }
      const std::string field = word.substr(0, equals);
      const std::string text = known_word(value, field, "gpus", file_, variables_);
      const Count found = to_int(text);
      if (!found || *found < 1 || *found > kMaxProcesses) {
        throw Error(fmt::format("'{}' does not say how many", printable(text)))
            .at(file_, value.line)
            .field(field)
            .hint("--gpus N in its place");
      }
      last = found;
    }
    return last;
  }

  const MegatronLauncher& launcher_;
  const std::string& file_;
  const ShellVariables& variables_;
};

}  // namespace

std::optional<std::int64_t> launched_processes(const MegatronLauncher& launcher,
                                               const std::string& file,
                                               const ShellVariables& variables) {
  return Launcher(launcher, file, variables).processes();
}

std::string known_word(const ShellWord& word, std::string_view field, std::string_view instead,
                       const std::string& file, const ShellVariables& variables) {
  const ShellUnknown* const unknown = variables.unknown_in(word.text);
  if (unknown == nullptr) {
    return word.text;
  }
  std::string hint;
  if (unknown->unset || (unknown->words > 0 && !unknown->what.starts_with("$("))) {
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
      .at(file, unknown->line > 0 ? unknown->line : word.line)
      .field(field)
      .hint(hint);
}

std::string flag_name(std::string_view word) {
  std::string name(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace lockstep
