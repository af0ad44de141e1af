// Lists of commands: what joins them, and which shell they run in.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_reader.h"
#include "generator/megatron_args/shell_test.h"

namespace lockstep {

ShellAnswer ShellReader::run(bool active, int forgets) {
  forgets_ = forgets;
  const Answer answer = list({}, active);
  if (!cursor_.at_end()) {
    throw Error(
        fmt::format("'{}' stands where a command should begin", printable(cursor_.here().text)))
        .at(file_, cursor_.line());
  }
  return answer;
}

ShellAnswer ShellReader::list(Ends ends, bool active) {
  if (++depth_ > kMaxShellDepth) {
    throw Error("commands are nested too deeply").at(file_, cursor_.line());
  }
  Answer answer = Answer::kYes;
  while (!cursor_.at_end() && !cursor_.at_one_of(ends)) {
    if (cursor_.at_redirection()) {  // before a command
      cursor_.skip_redirection();
      continue;
    }
    if (cursor_.at_any_operator() && !cursor_.at_operator("(")) {
      const std::string& text = cursor_.here().text;
      if (text == ")" || text == ";;" || text == ";&" || text == ";;&") {
        break;
      }
      cursor_.next();
      continue;
    }
    answer = chain(active);
  }
  --depth_;
  return answer;
}

ShellAnswer ShellReader::chain(bool active) {
  if (!active && forgets_ == 0) {
    return joined(false);
  }
  const std::size_t end = end_of([&] { return joined(false); });
  const std::size_t begin = cursor_.at();
  cursor_.go_to(end);
  const bool background = cursor_.at_operator("&");
  cursor_.go_to(begin);
  if (!background) {
    return joined(active);
  }
  apart(active, [&] { return joined(active); });
  return Answer::kYes;
}

ShellAnswer ShellReader::joined(bool active) {
  const std::size_t line = cursor_.line();
  const auto at_more = [&] { return cursor_.at_operator("&&") || cursor_.at_operator("||"); };
  // set -e counts for the last of the commands alone.
  const auto fallible = [&](const auto& what) {
    const std::size_t begin = cursor_.at();
    cursor_.go_to(active && variables().stops_at_failure ? end_of([&] { return pipeline(false); })
                                                         : begin);
    const bool more = at_more();
    cursor_.go_to(begin);
    const bool outer = std::exchange(may_fail_, may_fail_ || more);
    const Answer said = what();
    may_fail_ = outer;
    return said;
  };
  Answer answer = fallible([&] { return pipeline(active); });
  while (at_more()) {
    const std::string op = cursor_.here().text;
    cursor_.next();
    cursor_.skip_separators();  // a line may end behind them
    if (cursor_.at_end() ||
        (cursor_.at_any_operator() && !cursor_.at_operator("(") && !cursor_.at_redirection())) {
      break;
    }
    if (active && !stopped() && answer == Answer::kTakenNo && !in_condition_) {
      warn(line, "this depends on files: it counts as false");
    }
    answer = fallible([&] { return join(answer, op, active); });
  }
  return answer;
}

ShellAnswer ShellReader::join(Answer left, const std::string& op, bool active) {
  const bool both = op == "&&";
  if (left != Answer::kUnknown) {
    const bool runs = is_yes(left) == both;
    const Answer right = resting(left, [&] { return pipeline(active && runs); });
    return !runs ? left : both ? shell_and(left, right) : shell_or(left, right);
  }
  if (!active || stopped()) {
    return pipeline(active);
  }
  if (!in_condition_ && !at_test()) {
    warn(cursor_.line(),
         fmt::format("{}: it is left out, and what it sets is not known", kShellUndecided));
  }
  Answer right = Answer::kUnknown;
  perhaps(kShellUndecided, [&] { return right = pipeline(false); });
  return both ? shell_and(left, right) : shell_or(left, right);
}

bool ShellReader::at_test() const {
  return cursor_.at_word("[") || cursor_.at_word("[[") || cursor_.at_word("test") ||
         cursor_.at_word("!");
}

ShellAnswer ShellReader::pipeline(bool active) {
  const std::size_t line = cursor_.line();
  bool odd = false, negated = false;
  for (;;) {
    if (cursor_.at_word("!")) {
      odd = !odd;
      negated = true;
    } else if (!cursor_.at_word("time") && !cursor_.at_word("-p")) {
      break;
    }
    cursor_.next();
  }
  if (cursor_.at_end() ||
      (cursor_.at_any_operator() && !cursor_.at_operator("(") && !cursor_.at_redirection())) {
    return shell_answer(!odd);  // nothing to time
  }
  Answer answer = Answer::kYes;
  if (active && stopped()) {
    answer = without(state_.ended ? "the script ends before it" : "its function returns before it",
                     [&] { return members(false); });
  } else if (active && frame_.may_have_returned) {
    answer = perhaps(kShellUndecided, [&] { return members(false); });
  } else {
    answer = members(active);
  }
  answer = odd ? shell_not(answer) : answer;
  if (active && !stopped()) {
    state_.last = answer;
    if (!odd && !negated && plain_) {
      stop_at(answer, line);
    }
  }
  return answer;
}

void ShellReader::stop_at(Answer answer, std::size_t line) {
  if (answer != Answer::kNo || may_fail_ || !variables().stops_at_failure || state_.doubts > 0) {
    return;
  }
  state_.ended = Answer::kNo;
  if (state_.subshells == 0) {
    warn(line,
         "the script ends here, since this fails and 'set -e' is on: what follows is not read");
  }
}

ShellAnswer ShellReader::members(bool active) {
  const auto at_pipe = [&] { return cursor_.at_operator("|") || cursor_.at_operator("|&"); };
  const auto next_member = [&] {
    cursor_.next();
    cursor_.skip_separators();
    return !cursor_.at_end() &&
           (!cursor_.at_any_operator() || cursor_.at_operator("(") || cursor_.at_redirection());
  };
  if (!active && forgets_ == 0) {
    Answer answer = member(false);
    while (at_pipe() && next_member()) {
      answer = member(false);
    }
    return answer;
  }
  const std::size_t begin = cursor_.at();
  cursor_.go_to(end_of([&] { return member(false); }));
  const bool piped = at_pipe();
  cursor_.go_to(begin);
  if (!piped) {
    return member(active);
  }
  bool all_succeed = true;
  for (;;) {
    std::size_t end = end_of([&] { return member(false); });
    const std::size_t here = cursor_.at();
    cursor_.go_to(end);
    const bool last = !at_pipe();
    cursor_.go_to(here);
    Answer answer = Answer::kUnknown;
    if (last && state_.last_pipe) {
      warn(cursor_.line(), "what the last member of a pipe sets is not known");
      perhaps(kShellUndecided, [&] { return member(false); });
    } else {
      answer = apart(active, [&] { return member(active); });
    }
    plain_ = true;
    if (last || !next_member()) {  // pipefail is not followed
      return all_succeed || !is_yes(answer) ? answer : Answer::kUnknown;
    }
    all_succeed = all_succeed && is_yes(answer);
  }
}

ShellAnswer ShellReader::member(bool active) {
  while (cursor_.at_redirection()) {
    cursor_.skip_redirection();
  }
  if (cursor_.at_end()) {
    return Answer::kYes;
  }
  const Answer answer = command(active);
  while (cursor_.at_redirection()) {  // of a loop or a group
    cursor_.skip_redirection();
  }
  return answer;
}

ShellAnswer ShellReader::command(bool active) {
  using Read = Answer (ShellReader::*)(bool);
  static constexpr auto kCompound =
      std::to_array<std::pair<std::string_view, Read>>({{"if", &ShellReader::branch},
                                                        {"case", &ShellReader::selection},
                                                        {"for", &ShellReader::loop},
                                                        {"while", &ShellReader::loop},
                                                        {"until", &ShellReader::loop},
                                                        {"select", &ShellReader::loop},
                                                        {"function", &ShellReader::function}});
  const ShellToken first = cursor_.here();
  const bool word = first.kind == ShellToken::Kind::kWord;
  if (word && first.text == "coproc") {
    throw Error("a coproc is not read").at(file_, first.line);
  }
  Answer answer = Answer::kUnknown;
  bool plain = false;
  const auto* const compound =
      std::ranges::find(kCompound, first.text, &std::pair<std::string_view, Read>::first);
  if (word && compound != kCompound.end()) {
    answer = (this->*compound->second)(active);
  } else if (word && first.text == "{") {
    answer = group("}", active);
  } else if (word && cursor_.at_function()) {
    answer = function(active);
  } else {
    plain = true;
    answer = cursor_.at_operator("(")     ? group(")", active)
             : word && first.text == "[[" ? long_test(active)
                                          : simple(active);
  }
  plain_ = plain;
  return answer;
}

ShellAnswer ShellReader::group(std::string_view end, bool active) {
  const std::size_t line = cursor_.line();
  const std::string open = cursor_.here().text;
  cursor_.next();
  const auto inside = [&] { return list({end}, active); };
  const Answer answer = end == ")" ? apart(active, inside) : inside();
  cursor_.expect(end, open, line);
  return answer;
}

ShellAnswer ShellReader::long_test(bool active) {
  const std::size_t line = cursor_.line();
  cursor_.next();
  const std::size_t begin = cursor_.at();
  while (!cursor_.at_end() && !cursor_.at_word("]]")) {
    cursor_.next();
  }
  cursor_.expect("]]", "[[", line);
  const Tokens words = cursor_.between(begin, cursor_.at() - 1);
  if (!active && forgets_ == 0) {
    return Answer::kUnknown;
  }
  const Answer answer = shell_test(words, true, file_, variables());
  for (const ShellToken& word : active ? Tokens() : words) {
    forget_inside(word.text, word.line, variables());
  }
  return answer;
}

}  // namespace lockstep
