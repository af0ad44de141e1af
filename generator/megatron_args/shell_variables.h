#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
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
  std::int64_t words = 0;  ///< how many it is for certain, 1 or more; 0: who knows
  bool addition = false;   ///< what a command that may not have run would add to a list
};

/// The variables of a script and what could not be worked out. A marker is kMarkBegin, the number
/// of an entry in `unknowns`, kMarkEnd; those two characters occur nowhere else.
struct ShellVariables {
  static constexpr char kMarkBegin = '\x01', kMarkEnd = '\x02';
  struct Value {
    std::vector<ShellWord> items;
    bool array = false;
  };

  std::map<std::string, Value, std::less<>> values;
  std::vector<ShellUnknown> unknowns;
  std::int64_t budget = std::int64_t{64} << 20;  ///< characters that may still be produced

  void set(std::string_view name, std::string text, std::size_t line);
  void append(std::string_view name, std::string_view text, std::size_t line);
  /// The variable has a value, or none, that is not known: a command at `line` may have set it.
  void forget(std::string_view name, std::size_t line);
  /// The same where the command adds to the value: what was there stays. `glued`: without a blank
  /// between the two.
  void forget_addition(std::string_view name, bool glued, std::size_t line);
  void unset(std::string_view name);
  /// $1, $2 and so on, up to the first that is not set.
  std::vector<ShellWord> arguments() const;
  void set_arguments(std::span<const ShellWord> words);
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
  /// ERRORS: the script makes more text than any launch needs.
  void spend(std::size_t characters, const std::string& file, std::size_t line);
};

}  // namespace lockstep
