#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/usage.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

/// What can follow one (sub)command on a command line.
struct Place {
  std::string name;  // "lockstep topology build"
  std::vector<std::string>
      words;  // its subcommands, and the values of a positional that lists them
  std::vector<std::string> flags;
};

/// The values of a flag that takes one of a list: "lockstep completion --engine".
struct Choice {
  std::string flag;
  std::vector<std::string> values;
};

struct Tree {
  std::vector<Place> places;
  std::vector<Choice> choices;
};

/// CLI::IsMember tells its values only in the type's name: "TEXT:{bash,zsh}".
std::vector<std::string> listed_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) {
    return {};
  }
  std::vector<std::string> values;
  for (const std::string_view value :
       split(std::string_view(type).substr(open + 1, close - open - 1), ',')) {
    values.emplace_back(trim(value));
  }
  return values;
}

void collect(const CLI::App& app, Tree& tree) {
  Place place{full_name(app), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string> values = listed_values(*option);
    if (option->get_positional()) {
      place.words.insert(place.words.end(), values.begin(), values.end());
    }
    for (const std::string& name : option->get_lnames()) {
      place.flags.push_back("--" + name);
      if (!values.empty()) {
        tree.choices.push_back({place.name + " --" + name, values});
      }
    }
    for (const std::string& name : option->get_snames()) {
      place.flags.push_back("-" + name);
    }
  }
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : subcommands) {
    place.words.push_back(sub->get_name());
  }
  tree.places.push_back(std::move(place));
  for (const CLI::App* sub : subcommands) {
    collect(*sub, tree);
  }
}

/// The case arms that both shells share: which place a word leads to, and what can stand there.
struct Arms {
  std::string places, choices, next;
};

Arms arms_of(const Tree& tree) {
  Arms arms;
  std::vector<std::string> inner;
  for (const Place& place : tree.places) {
    if (place.name.find(' ') != std::string::npos) {
      inner.push_back(fmt::format("\"{}\"", place.name));
    }
    arms.next += fmt::format("    \"{}\") next=\"{}\" flags=\"{}\" ;;\n", place.name,
                             fmt::join(place.words, " "), fmt::join(place.flags, " "));
  }
  arms.places = fmt::format("      {}) place+=\" $word\" ;;\n", fmt::join(inner, " | "));
  for (const Choice& choice : tree.choices) {
    arms.choices +=
        fmt::format("    \"{}\") values=\"{}\" ;;\n", choice.flag, fmt::join(choice.values, " "));
  }
  return arms;
}

constexpr const char* kBash =
    R"(# bash completion of lockstep; load it with: source <(lockstep completion bash)
_lockstep() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local place=lockstep word values="" next="" flags=""
  # bash cuts --flag=value into three words.
  if [[ $current == "=" ]]; then
    current=""
  elif [[ $before == "=" ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$place $word" in
{places}    esac
  done
  case "$place $before" in
{choices}    *) ;;
  esac
  case "$place" in
{next}  esac
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ $before == -* ]]; then
    COMPREPLY=()
  else
    COMPREPLY=($(compgen -W "$next" -- "$current"))
  fi
}}
complete -o default -F _lockstep lockstep
)";

constexpr const char* kZsh = R"(#compdef lockstep
# zsh completion of lockstep; load it with: source <(lockstep completion zsh)
_lockstep() {{
  local current=${{words[CURRENT]}} before=${{words[CURRENT-1]}}
  local -a typed=("${{(@)words[2,CURRENT-1]}}")
  local place=lockstep word values="" next="" flags=""
  for word in "${{typed[@]}}"; do
    case "$place $word" in
{places}    esac
  done
  case "$place $before" in
{choices}    *) ;;
  esac
  case "$place" in
{next}  esac
  if [[ -n $values ]]; then
    compadd -- ${{=values}}
  elif [[ $current == -* ]]; then
    compadd -- ${{=flags}}
  else
    [[ $before == -* ]] || compadd -- ${{=next}}
    _files
  fi
}}
if [[ $funcstack[1] == _lockstep ]]; then
  _lockstep "$@"
else
  compdef _lockstep lockstep
fi
)";

std::string script(const std::string& shell, const CLI::App& root) {
  Tree tree;
  collect(root, tree);
  const Arms arms = arms_of(tree);
  return fmt::format(fmt::runtime(shell == "bash" ? kBash : kZsh), fmt::arg("places", arms.places),
                     fmt::arg("choices", arms.choices), fmt::arg("next", arms.next));
}

CommandBody define(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "The shell to complete in")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  return [shell, &app] {
    write_file("-", script(*shell, *app.get_parent()));
    return ExitCode::kDone;
  };
}

}  // namespace

extern const Command kCompletionCommand;
const Command kCompletionCommand{"completion", "Prints the completion script of a shell",
                                 R"(Examples:
  source <(lockstep completion bash)
  lockstep completion bash > ~/.local/share/bash-completion/completions/lockstep
  lockstep completion zsh > ~/.zfunc/_lockstep
)",
                                 define};

}  // namespace lockstep
