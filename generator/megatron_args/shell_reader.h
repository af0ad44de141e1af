#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
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

using ShellBody = std::vector<ShellToken>;

struct ShellFunction {
  std::vector<std::shared_ptr<const ShellBody>> bodies;  ///< one of them, if it is certain
  bool certain = false;
  bool exported = false;
};
using ShellFunctions = std::map<std::string, ShellFunction, std::less<>>;

/// What all readers of a script share.
struct ShellState {
  ShellFunctions functions;
  std::map<const ShellBody*, int> calls;  ///< of each body: how many are being read, or were
  std::vector<std::shared_ptr<const ShellBody>> bodies;  ///< all there are
  std::optional<ShellAnswer> ended;                      ///< what the exit says that ends the shell
  ShellAnswer last = ShellAnswer::kYes;                  ///< of the last command
  int doubts = 0;     ///< above 0: what runs does so because files or programs are taken to say so
  int subshells = 0;  ///< that are being read, one inside the other
  std::set<std::string, std::less<>> local;  ///< all names that were ever local to a function
  /// Names that are set for one command alone, and whether it declares them for longer.
  std::map<std::string, bool, std::less<>> prefixed;
  bool last_pipe = false;  ///< shopt -s lastpipe
};

/// A call of a function, or the script around all of them.
struct ShellFrame {
  struct Local {
    std::optional<ShellValue> value;
    bool integer = false, odd = false, exported = false;
  };
  bool function = false;
  bool certain = true;                  ///< the call is
  std::optional<ShellAnswer> returned;  ///< the function ends there
  bool may_have_returned = false;
  std::map<std::string, Local> locals;  ///< as they were outside of the function
};

/// Reads a text of a script into a ShellScript: the whole of it, what `bash -c` or `eval` is given,
/// or a function's body. Members named `active` say whether the commands run; where they do not,
/// and `forgets_` is above 0, they might.
class ShellReader {
 public:
  using Answer = ShellAnswer;

  ShellReader(ShellBody tokens, const std::string& file, ShellScript& script, ShellState& state,
              ShellFrame& frame, std::vector<ShellWord> launcher, int depth)
      : cursor_(std::move(tokens), file),
        file_(file),
        script_(script),
        state_(state),
        frame_(frame),
        launcher_(std::move(launcher)),
        depth_(depth) {}

  /// The whole text. `forgets`: above 0 where it is not `active`, but may be. ERRORS: those of
  /// read_shell_script().
  Answer run(bool active = true, int forgets = 0);

 private:
  using Tokens = std::span<const ShellToken>;
  using Ends = ShellCursor::Ends;

  ShellVariables& variables() { return script_.variables; }
  void warn(std::size_t line, const std::string& text);

  // Lists, pipelines, groups (shell_lists.cc)

  /// Commands up to one of `ends`, which is not taken. Returns what the last one says.
  Answer list(Ends ends, bool active);
  /// Commands that && and || join, and & behind them.
  Answer chain(bool active);
  Answer joined(bool active);
  /// The command behind `op`, where what is before that says `left`.
  Answer join(Answer left, const std::string& op, bool active);
  bool at_test() const;
  Answer pipeline(bool active);
  Answer members(bool active);
  /// What set -e does where a command says no.
  void stop_at(Answer answer, std::size_t line);
  Answer member(bool active);
  Answer command(bool active);
  Answer group(std::string_view end, bool active);
  Answer long_test(bool active);
  /// Whether nothing more of this text runs.
  bool stopped() const { return frame_.returned.has_value() || state_.ended.has_value(); }

  /// Does `what`, which leaves commands out because of `why`.
  template <class What>
  auto without(std::string_view why, const What& what) {
    const std::string_view outer = std::exchange(why_, why);
    auto result = what();
    why_ = outer;
    return result;
  }
  /// Does `what`, which may run or not, in spite of what is active around.
  template <class What>
  Answer perhaps(std::string_view why, const What& what) {
    ++forgets_;
    without(why, what);
    --forgets_;
    return Answer::kUnknown;
  }
  /// Does `what` where its answer rests upon `answer`.
  template <class What>
  Answer resting(Answer answer, const What& what) {
    state_.doubts += is_taken(answer) ? 1 : 0;
    const Answer result = what();
    state_.doubts -= is_taken(answer) ? 1 : 0;
    return result;
  }
  /// Goes over what `what` reads, as if it were not there, and says where that ends.
  template <class What>
  std::size_t end_of(const What& what) {
    const std::size_t begin = cursor_.at();
    pass_over(what);
    const std::size_t end = cursor_.at();
    cursor_.go_to(begin);
    return end;
  }
  /// The same, and stays there: it is read again, or elsewhere.
  template <class What>
  void pass_over(const What& what) {
    const bool outer = std::exchange(passes_over_, true);
    const int forgets = std::exchange(forgets_, 0);
    what();
    forgets_ = forgets;
    passes_over_ = outer;
  }
  /// Does `what` in a shell of its own, whose variables end with it.
  template <class What>
  Answer apart(bool active, const What& what) {
    const int forgets = std::exchange(forgets_, 0);
    if (!active) {
      const Answer answer = what();
      forgets_ = forgets;
      return answer;
    }
    variables().spend(variables().size() + 16 * state_.functions.size(), file_, cursor_.line());
    ShellNames names = variables();
    ShellFunctions functions = state_.functions;
    const bool may_have_returned = frame_.may_have_returned;
    auto locals = frame_.locals;
    ++state_.subshells;
    Answer answer = what();
    --state_.subshells;
    if (stopped()) {
      answer = frame_.returned ? *frame_.returned : *state_.ended;
    } else if (frame_.may_have_returned != may_have_returned) {
      answer = Answer::kUnknown;
    }
    frame_.returned.reset();
    frame_.may_have_returned = may_have_returned;
    frame_.locals = std::move(locals);
    state_.ended.reset();
    state_.functions = std::move(functions);
    static_cast<ShellNames&>(variables()) = std::move(names);
    forgets_ = forgets;
    return answer;
  }

  // if and case (shell_branches.cc)

  Answer branch(bool active);
  Answer condition(Ends ends, bool active);
  Answer selection(bool active);
  /// Whether one of the patterns up to ')' matches. Brackets inside, as in @(a|b), are not read.
  Answer arm(const std::string& subject, bool active);

  // Loops and functions (shell_loops.cc)

  Answer loop(bool active);
  /// The words of `for NAME in …`; nothing where they are not known, or where it is no such loop.
  std::optional<std::vector<ShellWord>> loop_words(Tokens header);
  /// From the loop's body on, a round for each word.
  Answer rounds(const std::vector<ShellWord>& words, Tokens header);
  /// A loop that may run, from its condition or its body on.
  Answer undecided_loop();
  Answer function(bool active);
  /// `words`: the name and the arguments. What is `local` to the function ends with it.
  Answer call(const std::string& name, Tokens words, bool active);
  Answer call_body(const std::shared_ptr<const ShellBody>& body, bool active, int forgets);
  /// The functions that a name which is not known may be.
  Answer call_some(Tokens words, bool active);

  // Commands of their own (shell_commands.cc)

  /// With what stands before it.
  Answer simple(bool active);
  Answer run_words(Tokens own, Tokens words, const ShellWords& found, bool active);
  void note_left_out(Tokens words);
  /// `words` expanded, so that expanding them again changes nothing; assignments of a declaration
  /// stay.
  ShellBody expanded(Tokens words);
  ShellToken expanded_assignment(const ShellToken& token);
  /// The commands of the shell itself that answer something or set variables, and functions;
  /// nothing for another. `certain`: it runs.
  std::optional<Answer> own_command(Tokens words, const ShellWords& found, bool certain);
  Answer arithmetic(Tokens words, bool certain);
  Answer leave(Tokens words, bool certain);
  Answer leave_function(Tokens words, bool certain);
  Answer status(Tokens words);
  Answer unset_functions(Tokens words, bool certain);
  /// unset reaches what is around the function or the command that has the name of its own.
  void note_unset(Tokens words);
  Answer ordinary(Tokens words);
  /// Does `what` while the assignments `own` hold.
  template <class What>
  void with(Tokens own, const What& what) {
    std::map<std::string, ShellFrame::Local> before;
    for (const ShellToken& each : own) {
      const ShellToken token = expanded_assignment(each);  // what its words set stays
      const std::string name = shell_target(token)->name;
      before.try_emplace(name, local_of(name));
      variables().integers.erase(name);
      variables().odd.erase(name);
      assign_shell(token, file_, variables());
      variables().exported.insert(name);
      state_.prefixed.try_emplace(name, false);
    }
    what();
    for (auto& [name, value] : before) {
      restore(name, std::move(value));
      if (state_.prefixed[name]) {
        variables().forget(name, own[0].line);
      }
      state_.prefixed.erase(name);
    }
  }
  ShellFrame::Local local_of(const std::string& name);
  void restore(const std::string& name, ShellFrame::Local local);
  std::string text_of(std::string_view name);

  // export, declare, local and their kin (shell_declare.cc)

  Answer declare(Tokens words, bool certain);
  Answer declare_one(const ShellToken& token, std::string_view flags, bool local, bool certain);

  // Text inside of commands (shell_inside.cc)

  void keep(ShellCommand command);
  Answer evaluate(Tokens words, bool certain);
  void read_inside(const std::string& text, std::size_t line, std::vector<ShellWord> launcher,
                   std::span<const ShellWord> arguments);

  ShellCursor cursor_;
  const std::string& file_;
  ShellScript& script_;
  ShellState& state_;
  ShellFrame& frame_;
  std::vector<ShellWord> launcher_;
  int depth_;
  int forgets_ = 0;  ///< above 0: what left-out commands set is not known
  std::string_view why_ = "the command before it says no";  ///< commands are left out
  bool passes_over_ = false;   ///< what is left out is read again or elsewhere
  bool in_condition_ = false;  ///< of if or while
  bool may_fail_ = false;      ///< set -e does not count here
  bool plain_ = true;          ///< the last command is one for set -e
};

constexpr int kMaxShellDepth = 64;  ///< of if, case, { }, calls and scripts inside scripts
constexpr std::string_view kShellUndecided = "whether it runs cannot be decided";

/// The word that names a Python program, or --num-layers, among tokens as they are written;
/// nullptr: there is none.
const ShellToken* program_among(std::span<const ShellToken> tokens);

}  // namespace lockstep
