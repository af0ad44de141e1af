#include "generator/megatron_args/shell_script.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_reader.h"
#include "generator/megatron_args/slurm_lines.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 20;
constexpr std::int64_t kMaxGiven = 4096;  // arguments

/// What was given as variables 1, 2 … are arguments.
void take_arguments(ShellVariables& variables) {
  std::int64_t count = 0;
  for (const auto& [name, value] : variables.values) {
    const std::int64_t number = to_int(name).value_or(0);
    count = number <= kMaxGiven ? std::max(count, number) : count;
  }
  std::vector<ShellWord> arguments;
  for (std::int64_t i = 1; i <= count; ++i) {
    const auto found = variables.values.find(std::to_string(i));
    arguments.push_back(found != variables.values.end()
                            ? found->second.items.front()
                            : ShellWord{variables.mark(
                                  {.unset = true, .what = "$" + std::to_string(i), .line = 1})});
  }
  std::erase_if(variables.values, [](const auto& each) { return to_int(each.first).has_value(); });
  variables.arguments = std::move(arguments);
}

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
  take_arguments(script.variables);
  const std::string_view first = std::string_view(clean).substr(0, clean.find('\n'));
  script.variables.stops_at_failure =
      first.starts_with("#!") && first.find(" -") != std::string_view::npos &&
      first.substr(first.find(" -")).find('e') != std::string_view::npos;
  for (const auto& [name, value] : script.variables.values) {
    script.variables.exported.insert(name);
  }
  script.variables.set("IFS", ShellVariables::kBlanks, 0);
  ShellState state;
  ShellFrame frame;
  ShellReader(lex_shell(clean, file), file, script, state, frame, {}, 0).run();
  for (const std::shared_ptr<const ShellBody>& body : state.bodies) {
    const ShellToken* const program =
        state.calls.contains(body.get()) ? nullptr : program_among(*body);
    if (program != nullptr && script.left_out.line == 0) {
      script.left_out = {program->line, "nothing here calls the function around it"};
    }
  }
  return script;
}

}  // namespace lockstep
