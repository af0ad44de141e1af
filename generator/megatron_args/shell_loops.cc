// Loops, and functions where they are called.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_reader.h"

namespace lockstep {
namespace {

constexpr std::size_t kRoundCost = 256;  // characters that a round of a loop counts as
constexpr std::size_t kCallCost = 256;   // and a call

bool has_word(std::span<const ShellToken> tokens, std::string_view text) {
  return std::ranges::any_of(tokens, [&](const ShellToken& token) {
    return token.kind == ShellToken::Kind::kWord && token.text == text;
  });
}

}  // namespace

std::optional<std::vector<ShellWord>> ShellReader::loop_words(Tokens header) {
  const bool all = header.size() == 2;  // for NAME: over the arguments
  if (header.size() < 2 || header[0].text != "for" || !is_shell_name(header[1].text) ||
      (!all && header[2].text != "in")) {
    return std::nullopt;
  }
  std::vector<ShellWord> words = all ? variables().arguments : std::vector<ShellWord>();
  for (const ShellToken& token : header.subspan(all ? 2 : 3)) {
    std::ranges::move(expand_word(token.text, token.line, file_, variables()),
                      std::back_inserter(words));
  }
  variables().drop_nothing(words);
  const bool countable = std::ranges::none_of(words, [&](const ShellWord& word) {
    return variables().may_split(word) ||
           word.text.find_first_of("*?{") != std::string::npos;  // names of files, {1..4}
  });
  return countable ? std::optional(std::move(words)) : std::nullopt;
}

ShellAnswer ShellReader::loop(bool active) {
  const std::size_t line = cursor_.line(), begin = cursor_.at();
  const std::string what = cursor_.here().text;
  const bool conditional = what == "while" || what == "until";
  Answer answer = Answer::kUnknown;  // of the condition
  cursor_.next();
  if (conditional) {
    answer = condition({"do"}, active);
  }
  while (!cursor_.at_end() && !cursor_.at_word("do")) {
    cursor_.next();
  }
  ShellBody header;
  for (const ShellToken& token : cursor_.between(begin, cursor_.at())) {
    if (token.text != ";") {
      header.push_back(token);
    }
  }
  cursor_.expect("do", what, line);
  const std::size_t body = cursor_.at();
  pass_over([&] { list({"done"}, false); });
  const std::size_t end = cursor_.at();
  cursor_.expect("done", what, line);
  const std::size_t behind = cursor_.at();

  std::optional<std::vector<ShellWord>> words;
  if (active && conditional && answer == (what == "while" ? Answer::kNo : Answer::kYes)) {
    words.emplace();
  } else if (active && !conditional) {
    words = loop_words(header);
  }
  const Tokens tokens = cursor_.between(body, end);
  const bool leaves = has_word(tokens, "break") || has_word(tokens, "continue");
  Answer result = Answer::kYes;
  if (active && (stopped() || (words && (words->empty() || !leaves)))) {
    cursor_.go_to(body);
    result = rounds(stopped() ? std::vector<ShellWord>() : *std::move(words), header);
  } else {
    const auto undecided = [&] {
      for (std::size_t i = 1; !conditional && forgets_ > 0 && i < header.size(); ++i) {
        forget_inside(header[i].text, line, variables());
        if (header[i].text.starts_with("((")) {
          forget_names(header[i].text, line, variables());
        } else if (i == 1 && is_shell_name(header[i].text)) {
          variables().forget(header[i].text, line);
        }
      }
      if (forgets_ > 0 && what == "select") {
        variables().forget("REPLY", line);
      }
      cursor_.go_to(conditional ? begin : body);
      return undecided_loop();
    };
    if (active) {
      warn(line, "a loop: its body is left out, and what it sets is not known");
      result = perhaps("it stands in a loop", undecided);
    } else {
      undecided();
    }
  }
  cursor_.go_to(behind);
  return result;
}

ShellAnswer ShellReader::rounds(const std::vector<ShellWord>& words, Tokens header) {
  const std::size_t body = cursor_.at();
  Answer answer = Answer::kYes;
  for (const ShellWord& word : words) {
    if (stopped()) {
      break;
    }
    variables().spend(kRoundCost, file_, header[0].line);
    if (frame_.may_have_returned) {
      variables().forget(header[1].text, header[0].line);
    } else {
      variables().set(header[1].text, ShellValue{{word}, false}, header[0].line);
    }
    cursor_.go_to(body);
    answer = list({"done"}, true);
    variables().spend(cursor_.at() - body, file_, header[0].line);
  }
  return answer;
}

ShellAnswer ShellReader::undecided_loop() {
  if (cursor_.at_word("while") || cursor_.at_word("until")) {
    cursor_.next();
    list({"do"}, false);
    cursor_.next();
  }
  return list({"done"}, false);
}

ShellAnswer ShellReader::function(bool active) {
  const std::size_t line = cursor_.line();
  if (cursor_.at_word("function")) {
    cursor_.next();
  }
  const std::string name = cursor_.at_any_word() ? cursor_.here().text : "";
  if (!cursor_.at_end()) {
    cursor_.next();
  }
  if (cursor_.at_operator("(")) {
    cursor_.next();
    if (cursor_.at_operator(")")) {
      cursor_.next();
    } else {  // function f (…): a subshell
      cursor_.go_to(cursor_.at() - 1);
    }
  }
  cursor_.skip_separators();
  if (cursor_.at_end() || (cursor_.at_any_operator() && !cursor_.at_operator("("))) {
    cursor_.expect("{", "function", line);
  }
  const std::size_t begin = cursor_.at();
  if (++depth_ > kMaxShellDepth) {
    throw Error("commands are nested too deeply").at(file_, line);
  }
  pass_over([&] { member(false); });
  --depth_;
  const Tokens tokens = cursor_.between(begin, cursor_.at());
  if (!active && !passes_over_) {
    note_left_out(tokens);
  }
  if (!active && forgets_ == 0) {
    return Answer::kYes;
  }
  ShellFunction& known = state_.functions[name];
  if (active) {
    known = {};
  }
  known.certain = active;
  known.bodies.push_back(std::make_shared<const ShellBody>(tokens.begin(), tokens.end()));
  state_.bodies.push_back(known.bodies.back());
  return Answer::kYes;
}

ShellAnswer ShellReader::call(const std::string& name, Tokens words, bool active) {
  const std::size_t line = words[0].line;
  const ShellFunction function = state_.functions.find(name)->second;
  std::vector<ShellWord> arguments;
  for (const ShellToken& word : words.subspan(1)) {
    std::ranges::move(expand_word(word.text, word.line, file_, variables()),
                      std::back_inserter(arguments));
  }
  variables().spend(kCallCost, file_, line);
  std::vector<ShellWord> outer = variables().arguments;
  variables().spend(outer.size(), file_, line);
  variables().set_arguments(std::move(arguments));
  Answer answer = Answer::kUnknown;
  if (function.certain && function.bodies.size() == 1) {
    answer = call_body(function.bodies.front(), active, forgets_);
  } else {
    warn(line, fmt::format("what the function '{}' is here is not known, and what it sets", name));
    for (const auto& body : function.bodies) {
      call_body(body, false, forgets_ + 1);
    }
  }
  variables().arguments = std::move(outer);
  return answer;
}

ShellAnswer ShellReader::call_body(const std::shared_ptr<const ShellBody>& body, bool active,
                                   int forgets) {
  int& calls = state_.calls[body.get()];
  constexpr int kRuns = 2;  // 1: it was called
  if (!active && calls >= kRuns) {
    return Answer::kUnknown;  // a call of itself that may never be
  }
  const int before = std::exchange(calls, kRuns);
  variables().spend(body->size(), file_, body->front().line);
  ShellFrame frame;
  frame.function = true;
  frame.certain = active;
  ShellReader reader(*body, file_, script_, state_, frame, launcher_, depth_);
  reader.why_ = why_;
  reader.passes_over_ = passes_over_;
  reader.may_fail_ = may_fail_;
  const Answer answer = reader.run(active, forgets);
  for (auto& [local, value] : frame.locals) {
    restore(local, std::move(value));
  }
  state_.calls[body.get()] = before == kRuns ? kRuns : 1;
  return frame.returned ? *frame.returned : frame.may_have_returned ? Answer::kUnknown : answer;
}

ShellAnswer ShellReader::call_some(Tokens words, bool active) {
  const std::string_view name = words[0].text;
  const std::size_t marker = name.find(ShellVariables::kMarkBegin);
  std::vector<std::string> names;
  for (const auto& [each, function] : state_.functions) {
    if (marker != std::string_view::npos && each.starts_with(name.substr(0, marker))) {
      names.push_back(each);
    }
  }
  if (names.empty()) {
    return Answer::kTakenYes;
  }
  if (active) {
    warn(words[0].line,
         fmt::format("which command {} is is not known: what functions that it may be set is not "
                     "known",
                     variables().unknown_in(name)->what));
  }
  for (const std::string& each : names) {
    perhaps(kShellUndecided, [&] { return call(each, words, false); });
  }
  return Answer::kUnknown;
}

}  // namespace lockstep
