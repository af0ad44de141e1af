// if and case.
#include <utility>

#include "base/error.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_pattern.h"
#include "generator/megatron_args/shell_reader.h"

namespace lockstep {
namespace {

constexpr std::string_view kNotTaken = "the branch around it is not taken";

}  // namespace

ShellAnswer ShellReader::branch(bool active) {
  const std::size_t line = cursor_.line();
  const int forgets = forgets_, doubts = state_.doubts;
  bool open = active;  // no branch was taken yet
  bool decided = active;
  std::string_view why = kNotTaken;
  Answer result = Answer::kYes;
  const auto take = [&](Ends ends, bool taken) {
    const Answer answer = without(why, [&] { return list(ends, taken); });
    result = taken ? answer : result;
  };
  do {
    const std::size_t condition_line = cursor_.line();
    cursor_.next();
    const Answer answer = condition({"then"}, open);
    cursor_.expect("then", "if", line);
    const bool runs = open && !stopped();
    const bool taken = open && is_yes(answer);
    if (runs && answer == Answer::kUnknown) {
      warn(condition_line,
           "this condition cannot be decided: its branches are left out, and what they set is "
           "not known");
      open = decided = false;
      why = kShellUndecided;
      ++forgets_;
    } else if (runs && answer == Answer::kTakenNo) {
      warn(condition_line, "this condition cannot be decided: its branch is left out");
    } else if (runs && answer == Answer::kTakenYes) {
      warn(condition_line, "this condition is a program's, which is taken to succeed");
    }
    state_.doubts += is_taken(answer) && open ? 1 : 0;  // the other branches, too
    take({"elif", "else", "fi"}, taken);
    open = open && !taken;
  } while (cursor_.at_word("elif"));
  if (cursor_.at_word("else")) {
    cursor_.next();
    take({"fi"}, open);
  }
  cursor_.expect("fi", "if", line);
  forgets_ = forgets;
  state_.doubts = doubts;
  return decided ? result : Answer::kUnknown;
}

ShellAnswer ShellReader::condition(Ends ends, bool active) {
  const bool outer = std::exchange(in_condition_, true);
  const bool may_fail = std::exchange(may_fail_, true);
  const Answer answer = list(ends, active);
  may_fail_ = may_fail;
  in_condition_ = outer;
  return answer;
}

ShellAnswer ShellReader::selection(bool active) {
  const std::size_t line = cursor_.line();
  const int forgets = forgets_;
  cursor_.next();
  if (cursor_.at_end()) {
    cursor_.expect("esac", "case", line);
  }
  std::optional<std::string> subject;
  if (active) {
    subject = variables().as_condition(
        expand_text(cursor_.here().text, cursor_.line(), file_, variables()));
  } else if (forgets_ > 0) {
    forget_inside(cursor_.here().text, cursor_.line(), variables());
  }
  cursor_.next();
  cursor_.skip_separators();
  cursor_.expect("in", "case", line);
  bool open = active, decided = active;
  bool falls = false;  // from the arm before, by ;&
  Answer result = Answer::kYes;
  std::string_view why = kNotTaken;
  const auto give_up = [&](std::size_t at) {
    warn(at,
         "what this 'case' looks at is not known: it is left out, and what it sets is not known");
    open = decided = false;
    why = kShellUndecided;
    ++forgets_;
  };
  if (open && !subject) {
    give_up(line);
  }
  cursor_.skip_separators();
  while (!cursor_.at_end() && !cursor_.at_word("esac")) {
    const std::size_t arm_line = cursor_.line();
    const Answer matches = arm(subject.value_or(""), open && !falls);
    if (open && !falls && matches == Answer::kUnknown) {
      give_up(arm_line);
    }
    cursor_.expect(")", "case", line);
    const bool taken = open && (falls || matches == Answer::kYes);
    const Answer answer = without(why, [&] { return list({"esac"}, taken); });
    result = taken ? answer : result;
    falls = taken && cursor_.at_operator(";&");
    open = open && (!taken || falls || cursor_.at_operator(";;&"));
    if (cursor_.at_operator(";;") || cursor_.at_operator(";&") || cursor_.at_operator(";;&")) {
      cursor_.next();
    }
    cursor_.skip_separators();
  }
  cursor_.expect("esac", "case", line);
  forgets_ = forgets;
  return decided ? result : Answer::kUnknown;
}

ShellAnswer ShellReader::arm(const std::string& subject, bool active) {
  if (cursor_.at_operator("(")) {
    cursor_.next();
  }
  Answer matches = Answer::kNo;
  int level = 0;
  while (!cursor_.at_end() && (level > 0 || !cursor_.at_operator(")"))) {
    if (cursor_.at_operator("(")) {
      ++level;
      matches = shell_or(matches, Answer::kUnknown);
    } else if (cursor_.at_operator(")")) {
      --level;
    } else if (active && level == 0 && cursor_.at_any_word() && matches != Answer::kYes) {
      const std::string pattern =
          expand_pattern(cursor_.here().text, cursor_.line(), file_, variables());
      const std::optional<std::string> known = variables().as_condition(pattern);
      variables().spend(shell_match_cost(subject, pattern), file_, cursor_.line());
      const std::optional<bool> match = known ? shell_matches(subject, *known) : std::nullopt;
      matches = shell_or(matches, match ? shell_answer(*match) : Answer::kUnknown);
    } else if (!active && forgets_ > 0 && cursor_.at_any_word()) {
      forget_inside(cursor_.here().text, cursor_.line(), variables());
    }
    cursor_.next();
  }
  return matches;
}

}  // namespace lockstep
