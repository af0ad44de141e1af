#include "generator/megatron_args/shell_script.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_change.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_lexer.h"
#include "generator/megatron_args/shell_test.h"
#include "generator/megatron_args/slurm_lines.h"

namespace lockstep {
namespace {

using Kind = ShellToken::Kind;
using Answer = std::optional<bool>;
using Values = decltype(ShellVariables::values);
using Words = std::initializer_list<std::string_view>;

constexpr std::size_t kMaxText = std::size_t{1} << 20;
constexpr int kMaxDepth = 64;  // of if, case, { } and of scripts inside scripts

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

class Reader {
 public:
  Reader(std::vector<ShellToken> tokens, const std::string& file, ShellScript& script,
         std::vector<ShellWord> launcher, int depth)
      : tokens_(std::move(tokens)),
        file_(file),
        script_(script),
        launcher_(std::move(launcher)),
        depth_(depth) {}

  void run() {
    list({}, true);
    if (at_ < tokens_.size()) {
      throw Error(fmt::format("'{}' stands where a command should begin", printable(here().text)))
          .at(file_, here().line);
    }
  }

 private:
  const ShellToken& here() const { return tokens_[at_]; }
  bool at_word(std::string_view text) const {
    return at_ < tokens_.size() && here().kind == Kind::kWord && here().text == text;
  }
  bool at_operator(std::string_view text) const {
    return at_ < tokens_.size() && here().kind == Kind::kOperator && here().text == text;
  }
  bool at_end_of(Words ends) const {
    return std::ranges::any_of(
        ends, [&](std::string_view end) { return at_word(end) || at_operator(end); });
  }
  void warn(std::size_t line, const std::string& text) {
    script_.warnings.add(fmt::format("{}:{}: {}", file_, line, text));
  }
  void expect(std::string_view end, std::string_view what, std::size_t line) {
    if (!at_word(end) && !at_operator(end)) {
      throw Error(fmt::format("the '{}' that begins here has no '{}'", what, end)).at(file_, line);
    }
    ++at_;
  }

  /// Commands up to one of `ends`, which is not taken. Returns what the last one says.
  Answer list(Words ends, bool active) {
    if (++depth_ > kMaxDepth) {
      throw Error("commands are nested too deeply").at(file_, tokens_.empty() ? 1 : here().line);
    }
    Answer answer = true;
    bool run_next = active, chained = false;
    while (at_ < tokens_.size() && !at_end_of(ends)) {
      if (here().kind == Kind::kOperator) {
        const std::string& op = here().text;
        if (op == ")" || op == ";;") {
          break;
        }
        if (op == "(") {
          group(")", run_next);
          continue;
        }
        // && and || look at the answer so far; an unknown one runs neither.
        run_next = active && (op == "&&" ? answer == true : op == "||" ? answer == false : true);
        chained = op == "&&" || op == "||";
        ++at_;
        continue;
      }
      const int forgets = forgets_;
      forgets_ += active && chained && !answer && needs_output_ ? 1 : 0;
      needs_output_ = needs_output_ && chained;
      const Answer one = command(run_next);
      answer = run_next ? one : answer;
      chained = false;
      forgets_ = forgets;
    }
    --depth_;
    return answer;
  }

  Answer command(bool active) {
    const ShellToken& first = here();
    if (first.kind == Kind::kWord) {
      if (first.text == "!") {
        ++at_;
        const Answer answer =
            at_ < tokens_.size() && here().kind != Kind::kOperator ? command(active) : Answer();
        return answer ? Answer(!*answer) : answer;
      }
      if (first.text == "if") {
        return branch(active);
      }
      if (first.text == "case") {
        return selection(active);
      }
      if (first.text == "for" || first.text == "while" || first.text == "until" ||
          first.text == "select") {
        return loop(active);
      }
      if (first.text == "{") {
        return group("}", active);
      }
      if (first.text == "[[") {
        return long_test(active);
      }
      if (first.text == "function" || defines_function()) {
        return function(active);
      }
    }
    return simple(active);
  }

  Answer group(std::string_view end, bool active) {
    const std::size_t line = here().line;
    const std::string open = here().text;
    ++at_;
    std::optional<Values> before;  // a subshell's variables end with it
    if (end == ")" && active) {
      std::size_t characters = 0;
      for (const auto& [name, value] : script_.variables.values) {
        for (const ShellWord& item : value.items) {
          characters += name.size() + item.text.size();
        }
      }
      script_.variables.spend(characters, file_, line);
      before = script_.variables.values;
    }
    const int forgets = forgets_;
    forgets_ = end == ")" ? 0 : forgets_;
    const Answer answer = list({end}, active);
    forgets_ = forgets;
    if (before) {
      script_.variables.values = *std::move(before);
    }
    expect(end, open, line);
    return answer;
  }

  Answer branch(bool active) {
    const std::size_t line = here().line;
    const int forgets = forgets_;
    bool open = active;  // no branch was taken yet
    bool first = true;
    while (first || at_word("elif")) {
      first = false;
      const std::size_t condition_line = here().line;
      ++at_;
      needs_output_ = false;
      const Answer condition = list({"then"}, open);
      expect("then", "if", line);
      const bool taken = open && condition == true;
      if (open && !condition && needs_output_) {
        warn(condition_line,
             "this condition cannot be decided: its branches are left out, and what they set is "
             "not known");
        open = false;
        ++forgets_;
      } else if (open && !condition) {
        warn(condition_line, "this condition cannot be decided: its branch is left out");
      }
      list({"elif", "else", "fi"}, taken);
      open = open && !taken;
    }
    if (at_word("else")) {
      ++at_;
      list({"fi"}, open);
    }
    expect("fi", "if", line);
    forgets_ = forgets;
    return true;
  }

  Answer selection(bool active) {
    const std::size_t line = here().line;
    const int forgets = forgets_;
    ++at_;
    if (at_ >= tokens_.size()) {
      expect("esac", "case", line);
    }
    const std::string text = expand_text(here().text, here().line, file_, script_.variables);
    const std::optional<std::string> subject = script_.variables.as_condition(text);
    ++at_;
    skip_separators();
    expect("in", "case", line);
    if (active && !subject) {
      warn(line,
           "what this 'case' looks at is not known: it is left out, and what it sets is not known");
      ++forgets_;
    }
    bool open = active && subject.has_value();
    skip_separators();
    while (at_ < tokens_.size() && !at_word("esac")) {
      bool matches = false;
      while (at_ < tokens_.size() && !at_operator(")")) {
        if (here().kind == Kind::kWord && open) {
          const std::string pattern =
              expand_text(here().text, here().line, file_, script_.variables);
          matches = matches || shell_matches(*subject, pattern);
        }
        ++at_;
      }
      expect(")", "case", line);
      list({"esac"}, open && matches);
      open = open && !matches;
      if (at_operator(";;")) {
        ++at_;
      }
      skip_separators();
    }
    expect("esac", "case", line);
    forgets_ = forgets;
    return true;
  }

  void skip_separators() {
    while (at_operator(";")) {
      ++at_;
    }
  }

  Answer loop(bool active) {
    const std::size_t line = here().line;
    if (active) {
      warn(line, "a loop: its body is left out");
    }
    const std::string what = here().text;
    while (at_ < tokens_.size() && !at_word("do")) {
      ++at_;
    }
    expect("do", what, line);
    list({"done"}, false);
    expect("done", what, line);
    return true;
  }

  bool defines_function() const {
    return at_ + 2 < tokens_.size() && tokens_[at_ + 1].kind == Kind::kOperator &&
           tokens_[at_ + 1].text == "(" && tokens_[at_ + 2].text == ")";
  }
  Answer function(bool active) {
    const std::size_t line = here().line;
    if (active) {
      warn(line, "a function: its body is left out");
    }
    while (at_ < tokens_.size() && !at_word("{")) {
      ++at_;
    }
    expect("{", "function", line);
    list({"}"}, false);
    expect("}", "function", line);
    return true;
  }

  Answer long_test(bool active) {
    const std::size_t line = here().line, begin = ++at_;
    while (at_ < tokens_.size() && !at_word("]]")) {
      ++at_;
    }
    expect("]]", "[[", line);
    const std::span words(tokens_.data() + begin, at_ - 1 - begin);
    return active ? test(words) : Answer();
  }

  /// Notes whether the answer is missing for a value that is not known; a test of files alone
  /// counts as false.
  Answer test(std::span<const ShellToken> words) {
    const Answer answer = shell_test(words, file_, script_.variables);
    if (!answer) {
      bool of_a_file = false;
      for (const ShellToken& word : words) {
        const std::string text = expand_text(word.text, word.line, file_, script_.variables);
        needs_output_ = needs_output_ || (!of_a_file && !script_.variables.as_condition(text));
        of_a_file =
            word.text.size() == 2 && word.text[0] == '-' && word.text != "-z" && word.text != "-n";
      }
    }
    return answer;
  }

  /// The tokens of a command up to its end; redirections are left out.
  std::vector<ShellToken> gather() {
    std::vector<ShellToken> words;
    while (at_ < tokens_.size()) {
      const ShellToken& token = here();
      if (token.kind == Kind::kOperator) {
        const bool redirects = token.text.find_first_of("<>") != std::string::npos;
        if (!redirects) {
          break;
        }
        ++at_;
        at_ += at_ < tokens_.size() && here().kind == Kind::kWord ? 1U : 0U;
        continue;
      }
      words.push_back(token);
      ++at_;
    }
    if (at_operator("|") || at_operator("|&")) {  // into tee or some such: left out
      ++at_;
      skip_separators();
      if (at_ < tokens_.size() && here().kind == Kind::kWord) {
        gather();
      }
    }
    return words;
  }

  static bool declares(const ShellToken& word) {
    static constexpr auto kDeclare =
        std::to_array<std::string_view>({"export", "declare", "local", "readonly", "typeset"});
    return std::ranges::find(kDeclare, word.text) != kDeclare.end();
  }

  Answer simple(bool active) {
    const std::size_t before = at_;
    const std::vector<ShellToken> words = gather();
    at_ += at_ == before ? 1 : 0;
    if (!active || words.empty()) {
      if (forgets_ > 0) {
        forget(words);
      }
      return true;
    }
    std::size_t k = 0;
    while (k < words.size() && !declares(words[k]) && name_of(words[k])) {
      ++k;
    }
    if (k < words.size() && !declares(words[k])) {
      return ordinary(std::span(words).subspan(k), std::span(words).first(k));
    }
    for (const ShellToken& word : words) {
      assign(word);
    }
    return true;
  }

  /// What a command that may or may not run assigns is not known afterwards.
  void forget(std::span<const ShellToken> words) {
    if (!words.empty() && (words[0].text == "let" || words[0].text.starts_with("(("))) {
      for (const ShellToken& word : words) {
        if (changes_shell_variable(word.text)) {
          forget_names(word.text, word.line);
        }
      }
      return;
    }
    for (const ShellToken& word : words) {
      const std::optional<std::string> name = name_of(word);
      if (!name && !declares(word)) {
        return;  // a command: its assignments hold for it alone
      }
    }
    for (const ShellToken& word : words) {
      if (const std::optional<std::string> name = name_of(word)) {
        ShellVariables& variables = script_.variables;
        variables.set(*name, variables.mark({false, "$" + *name, word.line}), word.line);
      }
    }
  }

  /// The name in NAME=value, NAME+=value and NAME=( … ).
  static std::optional<std::string> name_of(const ShellToken& token) {
    std::string name = token.text.substr(0, token.text.find('='));
    if (name.size() == token.text.size()) {
      return std::nullopt;
    }
    if (name.ends_with('+')) {
      name.pop_back();
    }
    return is_shell_name(name) ? std::optional(std::move(name)) : std::nullopt;
  }

  void assign(const ShellToken& token) {
    ShellVariables& variables = script_.variables;
    const std::optional<std::string> name = name_of(token);
    if (!name) {
      return;
    }
    const std::size_t equals = token.text.find('=');
    const bool more = token.text[equals - 1] == '+';
    if (token.kind == Kind::kArray) {
      std::vector<ShellWord> items;
      for (const ShellToken& element : token.elements) {
        for (ShellWord& word : expand_word(element.text, element.line, file_, variables)) {
          items.push_back(std::move(word));
        }
      }
      ShellVariables::Value& value = variables.values[*name];
      if (!more) {
        value.items.clear();
      }
      value.array = true;
      value.items.insert(value.items.end(), items.begin(), items.end());
      return;
    }
    const std::string text =
        expand_text(std::string_view(token.text).substr(equals + 1), token.line, file_, variables);
    if (more) {
      variables.append(*name, text, token.line);
    } else {
      variables.set(*name, text, token.line);
    }
  }

  /// `own`: assignments before the command, which hold for it alone.
  Answer ordinary(std::span<const ShellToken> words, std::span<const ShellToken> own) {
    const std::string& name = words[0].text;
    if (name == "[" || name == "test") {
      const bool bracket = name == "[" && words.back().text == "]";
      return test(words.subspan(1, words.size() - 1 - (bracket ? 1 : 0)));
    }
    if (name == "true" || name == ":") {
      for (const ShellToken& word : words) {  // : ${NAME:=word}
        expand_word(word.text, word.line, file_, script_.variables);
      }
      return true;
    }
    if (name == "false") {
      return false;
    }
    if (name.starts_with("((") && changes_shell_variable(name)) {
      change(std::string_view(name).substr(2, name.size() - 4), words[0].line);
      return true;
    }
    if (name == "let") {
      for (const ShellToken& word : words.subspan(1)) {
        change(expand_text(word.text, word.line, file_, script_.variables), word.line);
      }
      return true;
    }
    if (name.starts_with("((")) {
      const std::string text = expand_text("$" + name, words[0].line, file_, script_.variables);
      const std::optional<std::int64_t> value = to_int(text);
      needs_output_ = needs_output_ || !value;
      return value ? Answer(*value != 0) : Answer();
    }
    if (name == "unset") {
      for (const ShellToken& word : words.subspan(1)) {
        const auto found = script_.variables.values.find(word.text);
        if (found != script_.variables.values.end()) {
          script_.variables.values.erase(found);
        }
      }
      return true;
    }
    if (name == "source" || name == ".") {
      warn(words[0].line, "another file is read here: its variables are not known");
      return true;
    }
    ShellCommand command;
    command.line = words[0].line;
    for (const ShellToken& word : words) {
      for (ShellWord& each : expand_word(word.text, word.line, file_, script_.variables)) {
        command.words.push_back(std::move(each));
      }
    }
    if (command.words.empty()) {  // then they stay
      std::ranges::for_each(own, [&](const ShellToken& token) { assign(token); });
    } else if (own.empty()) {
      keep(std::move(command));
    } else {
      with(own, [&] { keep(std::move(command)); });
    }
    return true;
  }

  /// What (( … )) or let does; of what is not worked out the values are not known afterwards.
  void change(std::string_view text, std::size_t line) {
    if (const std::optional<ShellChange> change = shell_change(text)) {
      ShellVariables& variables = script_.variables;
      variables.set(change->name, expand_text(change->value, line, file_, variables), line);
      return;
    }
    warn(line,
         fmt::format("'{}' is not worked out: its variables are not known", printable(trim(text))));
    forget_names(std::string(text), line);
  }

  /// The values of the names in `text` are not known afterwards.
  void forget_names(std::string text, std::size_t line) {
    ShellVariables& variables = script_.variables;
    std::ranges::replace_if(
        text,
        [](char c) {
          return !is_shell_name(std::string{'_', c});
        },
        ' ');
    for (const std::string_view word : split_blanks(text)) {
      if (is_shell_name(word)) {
        variables.set(word, variables.mark({false, fmt::format("${}", word), line}), line);
      }
    }
  }

  /// Does `what` while the assignments `own` hold.
  template <class What>
  void with(std::span<const ShellToken> own, const What& what) {
    std::map<std::string, std::optional<ShellVariables::Value>> before;
    auto& values = script_.variables.values;
    for (const ShellToken& token : own) {
      const std::string name = *name_of(token);
      const auto found = values.find(name);
      before.try_emplace(name, found == values.end() ? std::nullopt : std::optional(found->second));
      assign(token);
    }
    what();
    for (auto& [name, value] : before) {
      if (value) {
        values.insert_or_assign(name, *std::move(value));
      } else if (const auto found = values.find(name); found != values.end()) {
        values.erase(found);
      }
    }
  }

  /// Looks into `eval` and `bash -c`.
  void keep(ShellCommand command) {
    std::vector<ShellWord>& words = command.words;
    if (words.empty()) {
      return;
    }
    if (words[0].text == "eval") {
      std::string text;
      for (const ShellWord& word : std::span(words).subspan(1)) {
        text += word.text + " ";
      }
      read_inside(text, words[0].line, launcher_);
      return;
    }
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      const std::string_view shell = base_name(words[i].text), flag = words[i + 1].text;
      if ((shell == "bash" || shell == "sh") && flag.size() > 1 && flag[0] == '-' &&
          flag[1] != '-' && flag.ends_with('c')) {
        std::vector<ShellWord> launcher = launcher_;
        launcher.insert(launcher.end(), words.begin(),
                        words.begin() + static_cast<std::ptrdiff_t>(i));
        read_inside(words[i + 2].text, words[i + 2].line, std::move(launcher));
        return;
      }
    }
    words.insert(words.begin(), launcher_.begin(), launcher_.end());
    const auto tasks = script_.variables.values.find("SLURM_NTASKS");
    if (tasks != script_.variables.values.end() && !tasks->second.items.empty()) {
      command.slurm_tasks = tasks->second.items.front().text;
    }
    script_.commands.push_back(std::move(command));
  }

  void read_inside(const std::string& text, std::size_t line, std::vector<ShellWord> launcher) {
    script_.variables.spend(text.size(), file_, line);
    if (depth_ + 8 > kMaxDepth) {
      throw Error("scripts stand inside each other too deeply").at(file_, line);
    }
    Reader(lex_shell(text, file_, line), file_, script_, std::move(launcher), depth_ + 8).run();
  }

  std::vector<ShellToken> tokens_;
  const std::string& file_;
  ShellScript& script_;
  std::vector<ShellWord> launcher_;
  int depth_;
  std::size_t at_ = 0;
  bool needs_output_ = false;  ///< the condition being read holds a value that is not known
  int forgets_ = 0;            ///< above 0: what left-out commands assign is not known
};

}  // namespace

ShellScript read_shell_script(std::string_view text, const std::string& file,
                              const ShellVariables& given) {
  if (text.size() > kMaxText) {
    throw Error("a script of more than 1 MiB").at(file);
  }
  std::string clean(text);
  std::ranges::replace_if(
      clean,
      [](char c) { return c == ShellVariables::kMarkBegin || c == ShellVariables::kMarkEnd; }, '?');
  ShellScript script;
  script.variables = given;
  set_slurm_variables(clean, script.variables);
  Reader(lex_shell(clean, file), file, script, {}, 0).run();
  return script;
}

}  // namespace lockstep
