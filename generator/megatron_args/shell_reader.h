#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generator/megatron_args/shell_answer.h"
#include "generator/megatron_args/shell_assign.h"
#include "generator/megatron_args/shell_cursor.h"
#include "generator/megatron_args/shell_script.h"

namespace lockstep {

struct ShellFunction {
  std::vector<ShellToken> body;
  bool called = false;
  bool runs = false;  ///< a call of it is being read
};
using ShellFunctions = std::map<std::string, ShellFunction, std::less<>>;

/// Reads a text of a script into a ShellScript: the whole of it, what `bash -c` is given, or a
/// function's body. Members named `active` say whether the commands run; where they do not, and
/// `forgets_` is above 0, they might.
class ShellReader {
 public:
  using Answer = ShellAnswer;

  ShellReader(std::vector<ShellToken> tokens, const std::string& file, ShellScript& script,
              ShellFunctions& functions, std::vector<ShellWord> launcher, int depth)
      : cursor_(std::move(tokens), file),
        file_(file),
        script_(script),
        functions_(functions),
        launcher_(std::move(launcher)),
        depth_(depth) {}

  /// The whole text. ERRORS: those of read_shell_script().
  Answer run();

 private:
  using Value = ShellVariables::Value;
  using Tokens = std::span<const ShellToken>;
  using Ends = ShellCursor::Ends;

  /// A function's body. `forgets`: whether the call runs is not known.
  Answer run_body(bool active, int forgets);
  ShellVariables& variables() { return script_.variables; }
  void warn(std::size_t line, const std::string& text);
  void restore(const std::string& name, std::optional<Value> value);
  std::optional<Value> value_of(const std::string& name);

  /// Commands up to one of `ends`, which is not taken. Returns what the last one says.
  Answer list(Ends ends, bool active);
  /// The command behind `op`, where what is before that says `left`.
  Answer joined(Answer left, const std::string& op, bool active);
  bool at_test() const;

  /// Does `what`, which leaves commands out because of `why`.
  template <class What>
  auto without(std::string_view why, const What& what) {
    const std::string_view outer = std::exchange(why_, why);
    auto result = what();
    why_ = outer;
    return result;
  }

  Answer command(bool active);
  Answer negated(bool active);
  Answer group(std::string_view end, bool active);
  Answer branch(bool active);
  Answer condition(Ends ends, bool active);
  Answer selection(bool active);
  /// Whether one of the patterns up to ')' matches. Brackets inside, as in @(a|b), are not read.
  Answer arm(const std::string& subject, bool active);
  /// The words of `for NAME in …`; nothing where they are not known, or where it is no such loop.
  std::optional<std::vector<ShellWord>> loop_words(Tokens header);

  Answer loop(bool active);
  /// From the loop's body on. `rounds`: a word for each round, if they are known; `condition`:
  /// where what is left out begins.
  void active_loop(const std::optional<std::vector<ShellWord>>& rounds,
                   const std::vector<ShellToken>& header, std::size_t condition);
  /// A loop that may run, from its condition or its body on.
  Answer undecided_loop();
  /// Commands up to one of `ends` that are read again, or elsewhere.
  void skip_list(Ends ends);

  Answer function(bool active);
  /// `words`: the name and the arguments. What is `local` to the function ends with it.
  Answer call(ShellFunction& function, Tokens words, bool active);
  Answer long_test(bool active);

  /// A command of its own, with what stands before it.
  Answer simple(bool active);
  void note_left_out(Tokens words);
  /// The commands of the shell itself that answer something or set variables, and functions;
  /// nothing for another. `certain`: it runs.
  std::optional<Answer> own_command(Tokens words, const ShellWords& found, bool certain);
  Answer arithmetic(Tokens words, bool certain);
  /// What (( … )) or let does; of what is not worked out the values are not known afterwards.
  void change(const std::string& text, std::size_t line);
  /// `own`: assignments before the command, which hold for it alone.
  Answer ordinary(Tokens words, Tokens own, const ShellWords& found);
  /// Does `what` while the assignments `own` hold.
  template <class What>
  void with(Tokens own, const What& what) {
    std::map<std::string, std::optional<Value>> before;
    for (const ShellToken& token : own) {
      const std::string name = shell_target(token)->name;
      before.try_emplace(name, value_of(name));
      assign_shell(token, file_, variables());
    }
    what();
    for (auto& [name, value] : before) {
      restore(name, std::move(value));
    }
  }

  /// Looks into `eval` and `bash -c`.
  void keep(ShellCommand command);
  void read_inside(const std::string& text, std::size_t line, std::vector<ShellWord> launcher);

  ShellCursor cursor_;
  const std::string& file_;
  ShellScript& script_;
  ShellFunctions& functions_;
  std::vector<ShellWord> launcher_;
  int depth_;
  int forgets_ = 0;  ///< above 0: what left-out commands set is not known
  std::string_view why_ = "the command before it says no";  ///< commands are left out
  bool passes_over_ = false;   ///< what is left out is read again or elsewhere
  bool in_condition_ = false;  ///< of if or while
  bool in_function_ = false;
  std::optional<Answer> returned_;                      ///< from the function, which ends there
  std::map<std::string, std::optional<Value>> locals_;  ///< as they were outside of the function
};

/// The word that names a Python program, or --num-layers, among tokens as they are written;
/// nullptr: there is none.
const ShellToken* program_among(std::span<const ShellToken> tokens);

}  // namespace lockstep
