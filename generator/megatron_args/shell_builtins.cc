#include "generator/megatron_args/shell_builtins.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "generator/megatron_args/shell_expand.h"

namespace lockstep {
namespace {

using Answer = ShellAnswer;

class Builtin {
 public:
  Builtin(std::vector<ShellWord> words, const ShellToken* here, bool certain,
          const std::string& file, ShellVariables& variables, Warnings& warnings)
      : words_(std::move(words)),
        here_(here),
        certain_(certain),
        file_(file),
        variables_(variables),
        warnings_(warnings) {}

  Answer read() {
    const std::vector<std::string> names = names_after_options("adinNptu", "REPLY");
    std::optional<std::string> text;
    if (here_ != nullptr && certain_ && !odd_ && variables_.separators() == " \t\n\r") {
      text = expand_text(here_->text, here_->line, file_, variables_);
    }
    if (!text || variables_.unknown_in(*text) != nullptr) {
      forget(names);
      return here_ != nullptr ? Answer::kYes : Answer::kUnknown;
    }
    std::string_view rest = trim(std::string_view(*text).substr(0, text->find('\n')));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::size_t end =
          i + 1 < names.size() ? std::min(rest.find_first_of(" \t"), rest.size()) : rest.size();
      variables_.set(names[i], std::string(rest.substr(0, end)), line());
      rest = trim(rest.substr(end));
    }
    return Answer::kYes;
  }

  Answer map_file() {
    forget({names_after_options("dnOsuCc", "MAPFILE").back()});
    return Answer::kYes;
  }

  Answer get_options() {
    if (certain_ && words_.size() < 4 && variables_.arguments.empty()) {
      return Answer::kNo;
    }
    forget({words_.size() > 2 ? words_[2].text : "", "OPTARG", "OPTIND"});
    return Answer::kUnknown;
  }

  Answer print() {
    forget({words_[2].text});
    return Answer::kYes;
  }

  Answer set() {
    std::size_t i = 1;
    while (i < words_.size() && is_option(words_[i].text) && words_[i].text != "--") {
      const bool named = words_[i].text.ends_with('o') && i + 1 < words_.size();
      const auto turns = [&](char letter, std::string_view name) {
        return named && words_[i + 1].text == name
                   ? true
                   : words_[i].text.find(letter) != std::string::npos;
      };
      const bool on = words_[i].text[0] == '-' && certain_;
      variables_.exports_all = variables_.exports_all || turns('a', "allexport");
      variables_.stops_at_failure = turns('e', "errexit") ? on : variables_.stops_at_failure;
      i += named ? 2U : 1U;
    }
    const bool ends = i < words_.size() && words_[i].text == "--";
    if (i < words_.size() && certain_) {
      words_.erase(words_.begin(),
                   words_.begin() + static_cast<std::ptrdiff_t>(i + (ends ? 1 : 0)));
      variables_.set_arguments(std::move(words_));
    } else if (i < words_.size()) {
      variables_.forget_arguments(line());
    }
    return Answer::kYes;
  }

  Answer shift() {
    std::vector<ShellWord>& arguments = variables_.arguments;
    const std::optional<std::int64_t> count = words_.size() > 1 ? to_int(words_[1].text) : 1;
    variables_.spend(arguments.size() / 4 + 1, file_, line());
    const auto unsure = std::ranges::find_if(
        arguments, [&](const ShellWord& word) { return variables_.may_split(word); });
    if (count && certain_ && *count >= 0 && *count <= unsure - arguments.begin()) {
      arguments.erase(arguments.begin(), arguments.begin() + *count);
      return Answer::kYes;
    }
    if (!count || !certain_ || unsure != arguments.end()) {
      variables_.forget_arguments(line());
      return Answer::kUnknown;
    }
    return Answer::kNo;  // there are fewer
  }

  Answer unset() {
    for (const ShellWord& word : std::span(words_).subspan(1)) {
      const std::string_view name = std::string_view(word.text).substr(0, word.text.find('['));
      if (certain_ && name.size() == word.text.size()) {
        variables_.unset(name, line());
      } else {
        forget({std::string(name)});
      }
    }
    return Answer::kYes;
  }

 private:
  std::size_t line() const { return words_[0].line; }
  static bool is_option(std::string_view word) {
    return word.size() > 1 && (word[0] == '-' || word[0] == '+');
  }

  /// The names behind the options, of which those in `with_value` take the next word.
  std::vector<std::string> names_after_options(std::string_view with_value,
                                               std::string_view otherwise) {
    std::vector<std::string> names;
    for (std::size_t i = 1; i < words_.size(); ++i) {
      const std::string& word = words_[i].text;
      if (!is_option(word)) {
        names.push_back(word);
        continue;
      }
      const std::size_t at = word.find_first_of(with_value, 1);
      if (at == std::string::npos) {
        continue;
      }
      odd_ = odd_ || (word[at] != 'p' && word[at] != 't');
      const bool next = at + 1 == word.size();
      if (word[at] == 'a') {
        names.push_back(next && i + 1 < words_.size() ? words_[i + 1].text : word.substr(at + 1));
      }
      i += next ? 1U : 0U;
    }
    if (names.empty()) {
      names.emplace_back(otherwise);
    }
    return names;
  }

  void forget(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (is_shell_name(name)) {
        variables_.forget(name, line());
      } else if (const std::string array = name.substr(0, name.find('[')); is_shell_name(array)) {
        variables_.forget(array, line());
      } else if (!variables_.is_nothing(name)) {
        warnings_.add(fmt::format("{}:{}: which variable '{}' sets is not known", file_, line(),
                                  printable(words_[0].text)));
      }
    }
  }

  std::vector<ShellWord> words_;
  const ShellToken* here_;
  bool certain_;
  const std::string& file_;
  ShellVariables& variables_;
  Warnings& warnings_;
  bool odd_ = false;  ///< an option changes how the text is cut
};

struct Known {
  std::string_view name;
  Answer (Builtin::*run)();
};
constexpr auto kBuiltins = std::to_array<Known>({{"read", &Builtin::read},
                                                 {"mapfile", &Builtin::map_file},
                                                 {"readarray", &Builtin::map_file},
                                                 {"getopts", &Builtin::get_options},
                                                 {"printf", &Builtin::print},
                                                 {"set", &Builtin::set},
                                                 {"shift", &Builtin::shift},
                                                 {"unset", &Builtin::unset}});

}  // namespace

std::optional<ShellAnswer> run_shell_builtin(std::span<const ShellToken> words,
                                             const ShellToken* here, bool certain,
                                             const std::string& file, ShellVariables& variables,
                                             Warnings& warnings) {
  const auto found = std::ranges::find(kBuiltins, std::string_view(words[0].text), &Known::name);
  const bool prints = words[0].text == "printf";
  if (found == kBuiltins.end() || (prints && (words.size() < 3 || words[1].text != "-v"))) {
    return std::nullopt;
  }
  std::vector<ShellWord> expanded;
  for (const ShellToken& word : words) {
    std::ranges::move(expand_word(word.text, word.line, file, variables),
                      std::back_inserter(expanded));
  }
  if (prints && expanded.size() < 3) {
    return std::nullopt;
  }
  return (Builtin(std::move(expanded), here, certain, file, variables, warnings).*found->run)();
}

}  // namespace lockstep
