#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A word of a script after expansion. What could not be known without running the script stands in
/// its text as a marker, see ShellVariables.
struct ShellWord {
  std::string text;
  std::size_t line = 0;  ///< where it was written, not where it is used
  bool loose = false;    ///< what is not known in it was not quoted: no word, or several
};

/// Why a piece of text is not known.
struct ShellUnknown {
  bool unset = false;  ///< an unset variable or argument of the script: empty, were it run
  std::string what;    ///< "$TP", "$(hostname)"
  std::size_t line = 0;
  /// How many it is for certain, 1 or more; 0: who knows. 1 of what is unset: $(( … )) with that.
  std::int64_t words = 0;
  bool addition = false;  ///< what a command that may not have run would add to a list
};

/// A variable: a text, or the elements of an array.
struct ShellValue {
  std::vector<ShellWord> items;
  bool array = false;
};

/// What a shell has of its own: a subshell begins with a copy.
struct ShellNames {
  std::map<std::string, ShellValue, std::less<>> values;
  std::vector<ShellWord> arguments;  ///< $1, $2 …; a word that may_split() is any number of them
  std::set<std::string, std::less<>> integers;  ///< declare -i: what they are given is worked out
  std::set<std::string, std::less<>> odd;       ///< what they are given is not followed
  std::set<std::string, std::less<>> exported;  ///< programs see them
  bool exports_all = false;                     ///< set -a: programs see what is set
  bool stops_at_failure = false;                ///< set -e
};

/// The variables of a script and what could not be worked out. A marker is kMarkBegin, the number
/// of an entry in `unknowns`, kMarkEnd; those two characters occur nowhere else.
struct ShellVariables : ShellNames {
  static constexpr char kMarkBegin = '\x01', kMarkEnd = '\x02';
  static constexpr auto kBlanks = " \t\n";  ///< $IFS as it is at first
  using Value = ShellValue;

  std::vector<ShellUnknown> unknowns;
  std::int64_t budget = std::int64_t{16} << 20;  ///< characters that may still be produced

  void set(std::string_view name, std::string text, std::size_t line);
  void set(std::string_view name, Value value, std::size_t line);
  void append(std::string_view name, std::string_view text, std::size_t line);
  /// The variable has a value, or none, that is not known: a command at `line` may have set it.
  void forget(std::string_view name, std::size_t line);
  /// The same where the command adds to the value: what was there stays. `glued`: without a blank
  /// between the two.
  void forget_addition(std::string_view name, bool glued, std::size_t line);
  void unset(std::string_view name, std::size_t line);
  /// What the variable is given from now on is not followed, so that it is not known.
  void make_odd(std::string_view name, std::size_t line);
  /// $1, $2 and so on; words that are nothing are left out.
  void set_arguments(std::vector<ShellWord> words);
  void forget_arguments(std::size_t line);
  /// Argument `number`, from 1 on. Nothing: it is not set. Which one it is may not be known.
  std::optional<ShellWord> argument(std::int64_t number) const;
  /// What cuts words that are not quoted, $IFS; nothing: it is not known.
  std::optional<std::string> separators() const;
  /// A marker for text that is not known.
  std::string mark(ShellUnknown unknown);
  /// What is not known in `text`, the first one; nullptr if all is.
  const ShellUnknown* unknown_in(std::string_view text) const;
  /// `text` as a condition sees it: unset variables are empty; nothing if more is not known.
  std::optional<std::string> as_condition(std::string_view text) const;
  /// Whether `text` is empty but for unset variables.
  bool is_nothing(std::string_view text) const;
  /// Whether `text` holds something for certain, known or not.
  bool is_something(std::string_view text) const;
  /// Whether `word` may be several words, or none.
  bool may_split(const ShellWord& word) const;
  /// Leaves out words that are none for certain: unset variables that were not quoted.
  void drop_nothing(std::vector<ShellWord>& words) const;
  /// The characters of all values and arguments.
  std::size_t size() const;
  /// ERRORS: the script makes more text than any launch needs.
  void spend(std::size_t characters, const std::string& file, std::size_t line);
};

}  // namespace lockstep
