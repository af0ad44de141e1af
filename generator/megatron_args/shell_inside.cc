// Text inside of commands: eval, and what bash -c is given.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_reader.h"

namespace lockstep {
namespace {

constexpr int kMaxInside = 56;  // how deep a script may stand in others

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

void ShellReader::keep(ShellCommand command) {
  std::vector<ShellWord>& words = command.words;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    const std::string_view shell = base_name(words[i].text), flag = words[i + 1].text;
    if ((shell == "bash" || shell == "sh") && flag.size() > 1 && flag[0] == '-' && flag[1] != '-' &&
        flag.ends_with('c')) {
      std::vector<ShellWord> launcher = launcher_;
      launcher.insert(launcher.end(), words.begin(),
                      words.begin() + static_cast<std::ptrdiff_t>(i));
      read_inside(words[i + 2].text, words[i + 2].line, std::move(launcher),
                  std::span(words).subspan(std::min(i + 4, words.size())));
      return;
    }
  }
  words.insert(words.begin(), launcher_.begin(), launcher_.end());
  command.slurm_tasks = text_of("SLURM_NTASKS");
  command.slurm_nodes = text_of("SLURM_NNODES");
  script_.commands.push_back(std::move(command));
}

ShellAnswer ShellReader::evaluate(Tokens words, bool certain) {
  const std::size_t line = words[0].line;
  std::string text;
  for (const ShellToken& word : words.subspan(1)) {
    for (const ShellWord& each : expand_word(word.text, word.line, file_, variables())) {
      text += each.text + " ";
    }
  }
  if (const std::optional<std::string> known = variables().as_condition(text)) {
    text = *known;
  } else if (certain) {
    warn(line, fmt::format("what this 'eval' runs is not known in full: {} is taken as a part of a "
                           "word",
                           variables().unknown_in(text)->what));
  }
  variables().spend(text.size(), file_, line);
  if (depth_ > kMaxInside) {
    throw Error("scripts stand inside each other too deeply").at(file_, line);
  }
  ShellReader reader(lex_shell(text, file_, line), file_, script_, state_, frame_, launcher_,
                     depth_ + 8);
  reader.why_ = why_;
  reader.passes_over_ = passes_over_;
  reader.may_fail_ = may_fail_;
  return reader.run(certain, forgets_);
}

void ShellReader::read_inside(const std::string& text, std::size_t line,
                              std::vector<ShellWord> launcher,
                              std::span<const ShellWord> arguments) {
  variables().spend(text.size(), file_, line);
  if (depth_ > kMaxInside) {
    throw Error("scripts stand inside each other too deeply").at(file_, line);
  }
  ShellFrame frame;
  ShellReader reader(lex_shell(text, file_, line), file_, script_, state_, frame,
                     std::move(launcher), depth_ + 8);
  apart(true, [&] {  // a program sees what is exported
    if (!variables().exports_all) {
      std::erase_if(variables().values,
                    [&](const auto& each) { return !variables().exported.contains(each.first); });
    }
    if (!variables().exports_all) {
      std::erase_if(state_.functions, [](const auto& each) { return !each.second.exported; });
    }
    variables().stops_at_failure = false;
    variables().values.erase("IFS");
    variables().set_arguments({arguments.begin(), arguments.end()});
    return reader.run();
  });
}

}  // namespace lockstep
