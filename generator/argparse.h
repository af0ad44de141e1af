#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace lockstep {

enum class ArgKind : std::uint8_t { kSwitch, kInteger, kText };

/// One flag of a program whose command line we accept. '-' and '_' in names mean the same.
struct ArgSpec {
  std::string_view name;     ///< with '_': "world_size"
  std::string_view aliases;  ///< further spellings, separated by blanks: "tp tp_num"
  ArgKind kind = ArgKind::kText;
  std::string_view fallback;  ///< the value when it is not given; empty: none
  std::string_view help;
  std::string_view choices = {};  ///< kText: the allowed values, separated by blanks
  std::int64_t low = 0;           ///< kInteger: the allowed range
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

/// The command line of a program: its flags and the names of its positional arguments.
struct ArgTable {
  std::span<const ArgSpec> flags;
  std::span<const std::string_view> positionals = {};
};

/// What a command line said, flag by flag.
class ArgValues {
 public:
  /// All flags unset. The table's storage must outlive this object.
  explicit ArgValues(const ArgTable& table) : table_(table) {}

  bool given(std::string_view name) const { return values_.contains(name); }
  bool on(std::string_view name) const { return given(name); }  ///< of a switch
  /// The value or the fallback. PRECONDITION: the table has `name`, of that kind, and a value.
  std::int64_t integer(std::string_view name) const;
  std::string text(std::string_view name) const;
  /// A value without a fallback, if it was given.
  std::optional<std::int64_t> integer_if(std::string_view name) const;
  std::optional<std::string> text_if(std::string_view name) const;

  /// Checks the value and sets it, over an earlier one. ERRORS: Error naming the flag: not a
  /// number, out of range, not among the choices.
  void set(std::string_view name, std::string_view value);
  /// set() unless the flag already has a value.
  void set_default(std::string_view name, std::string_view value);

  const ArgTable& table() const { return table_; }

 private:
  ArgTable table_;
  std::map<std::string, std::string, std::less<>> values_;
};

/// A flag that no table knows. A command that has flags of its own may know a near one.
class UnknownFlag : public Error {
 public:
  /// `near`: the table's nearest flag, or empty.
  UnknownFlag(std::string_view word, std::string_view near);
  const std::string& word() const { return word_; }  ///< as given, without "--"
  bool has_near() const { return has_near_; }

 private:
  std::string word_;
  bool has_near_;
};

/// Whether the last of several values wins, as in argparse, or a flag is given one alone: under two
/// names only the same one, under one name once. Switches may be repeated.
enum class Names : std::uint8_t { kAlike, kOneAtATime };

/// Reads a command line as Python's argparse does: "--flag value" and "--flag=value", any
/// unambiguous prefix of a name, the last of several wins, numbers as int() reads them. Beyond
/// that, '-' and '_' are interchangeable and the aliases are known (an alias goes before a prefix).
///
/// ERRORS: Error naming the flag: UnknownFlag (with the nearest known), ambiguous, without its
/// value, a switch with one, a wrong value, what `names` forbids, too many positional
/// arguments.
ArgValues parse_args(const ArgTable& table, std::span<const std::string> words,
                     Names names = Names::kAlike);
/// Of a flag that is given again. ERRORS: Error naming the flag: under the same name, '-' and '_'
/// aside, or another value under another name.
void check_names(std::string_view flag, std::string_view name, std::string_view value,
                 std::string_view earlier_name, std::string_view earlier_value);

/// The table as the text of a --help.
std::string args_help(const ArgTable& table);

}  // namespace lockstep
