#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"
#include "generator/megatron_args/megatron_processes.h"
#include "generator/megatron_args/shell_script.h"
#include "generator/megatron_args/shell_variables.h"
#include "generator/megatron_args/training_log.h"

namespace lockstep {

/// The command line that trains, as a script or an argument file of Megatron-LM has it. Flags are
/// named without "--" and with '-'; of several the last counts, as in Python's argparse.
class MegatronLaunch {
 public:
  struct Flag {
    std::vector<ShellWord> values;  ///< the words up to the next flag
    std::size_t line = 0;
  };

  /// Reads a shell script (read_shell_script()) in which a Python program is started with
  /// --num-layers among its flags, a file of flags alone, or the log of a training that lists its
  /// arguments (training_log.h), by what is in it. `given` are variables that are set before the
  /// script begins.
  ///
  /// ERRORS: those of read_shell_script() and read_training_log(); no such command.
  static MegatronLaunch parse(std::string_view text, const std::string& file,
                              const ShellVariables& given = {});

  bool has(std::string_view name) const;  ///< and notes that it was looked at
  /// The value of a flag, if it is there. ERRORS: with file and line: no value, a value that is not
  /// known, no whole number from `low`. `instead` is the flag of ours that replaces it, for hints.
  std::optional<std::string> text(std::string_view name, std::string_view instead = {}) const;
  /// ERRORS: one that is not in the list, too.
  std::optional<std::string> choice(std::string_view name,
                                    std::initializer_list<std::string_view> known,
                                    std::string_view instead = {}) const;
  std::optional<std::int64_t> whole(std::string_view name, std::int64_t low,
                                    std::string_view instead = {}) const;
  std::optional<double> number(std::string_view name) const;
  /// All values of a flag, joined by blanks.
  std::optional<std::string> joined(std::string_view name) const;

  /// launched_processes(); of a log its world size.
  std::optional<std::int64_t> processes() const;

  /// Notes that a flag needs no reading, since another of ours replaces it.
  void pass_over(std::string_view name) const;
  /// Flags that nobody asked for, in order of their names; of a log none, which lists defaults,
  /// too.
  std::vector<std::string> unread() const;

  std::size_t line_of(std::string_view name) const;  ///< 0: it is not there
  const std::string& file() const { return file_; }
  std::size_t line() const { return line_; }               ///< of the command
  const std::string& program() const { return program_; }  ///< "pretrain_gpt.py"; empty: none
  const Warnings& warnings() const { return warnings_; }
  /// Parameters on the ranks of a pipeline stage, by stage, where a log counts them.
  const std::map<std::int64_t, std::int64_t>& logged_parameters() const { return parameters_; }

  /// Where flags may be that were not read, for a hint: "what $ARGS holds is not known
  /// (train.sh:7)", "the program that train.sh:9 starts is left out: …"; empty: nowhere.
  std::string hidden() const;
  /// Warns of what is not known behind a flag and may be flags, since it is no value that was asked
  /// for. To be called when all has been read.
  Warnings hidden_words() const;

 private:
  static MegatronLaunch of_log(std::string_view text, const std::string& file);
  void take_argument(const LoggedArgument& argument);
  void take_flags(const std::vector<ShellWord>& words, std::size_t first);
  std::string known(const ShellWord& word, std::string_view field, std::string_view instead) const;
  const ShellUnknown* hidden_in(const ShellWord& word) const;
  void warn_of(const ShellUnknown& unknown, Warnings& warnings) const;

  std::string file_, program_;
  std::size_t line_ = 0;
  std::map<std::string, Flag, std::less<>> flags_;
  MegatronLauncher launcher_;
  std::map<std::int64_t, std::int64_t> parameters_;  ///< of a log
  bool logged_ = false;
  std::vector<ShellWord> hidden_;  ///< that may hold flags
  ShellLeftOut left_out_;
  ShellVariables variables_;
  Warnings warnings_;
  mutable std::set<std::string, std::less<>> seen_, valued_;  ///< asked for, asked for its value
};

}  // namespace lockstep
