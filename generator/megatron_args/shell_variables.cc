#include "generator/megatron_args/shell_variables.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

void ShellVariables::set(std::string_view name, std::string text, std::size_t line) {
  const std::optional<std::int64_t> number = to_int(text);
  if (integers.contains(name) && !(number && std::to_string(*number) == text)) {
    forget(name, line);  // it is worked out
    return;
  }
  if (odd.contains(name)) {
    forget(name, line);
    return;
  }
  values.insert_or_assign(std::string(name), Value{{{std::move(text), line}}, false});
}

void ShellVariables::set(std::string_view name, Value value, std::size_t line) {
  if (odd.contains(name) || integers.contains(name)) {
    forget(name, line);
  } else {
    values.insert_or_assign(std::string(name), std::move(value));
  }
}

void ShellVariables::append(std::string_view name, std::string_view text, std::size_t line) {
  if (odd.contains(name)) {
    forget(name, line);
    return;
  }
  Value& value = values[std::string(name)];
  if (value.items.empty()) {
    value.items.push_back({"", line});
  }
  value.items.front().text += text;
}

void ShellVariables::forget(std::string_view name, std::size_t line) {
  const std::string unknown = mark({.what = "$" + std::string(name), .line = line});
  values.insert_or_assign(std::string(name), Value{{{unknown, line, true}}, false});
}

void ShellVariables::forget_addition(std::string_view name, bool glued, std::size_t line) {
  if (odd.contains(name) || integers.contains(name)) {
    forget(name, line);
    return;
  }
  const std::string unknown =
      mark({.what = "$" + std::string(name), .line = line, .addition = !glued});
  Value& value = values[std::string(name)];
  if (value.array || value.items.empty()) {
    value.items.push_back({unknown, line, true});
    return;
  }
  if (!is_something(value.items.front().text)) {
    forget(name, line);
    return;
  }
  value.items.front().text += glued ? unknown : " " + unknown + " ";
}

void ShellVariables::unset(std::string_view name, std::size_t line) {
  if (odd.contains(name)) {
    forget(name, line);
    return;
  }
  if (const auto found = values.find(name); found != values.end()) {
    values.erase(found);
  }
  if (const auto found = integers.find(name); found != integers.end()) {
    integers.erase(found);
  }
  if (const auto found = exported.find(name); found != exported.end()) {
    exported.erase(found);
  }
}

void ShellVariables::make_odd(std::string_view name, std::size_t line) {
  odd.emplace(name);
  forget(name, line);
}

void ShellVariables::set_arguments(std::vector<ShellWord> words) {
  drop_nothing(words);
  arguments = std::move(words);
}

void ShellVariables::forget_arguments(std::size_t line) {
  arguments = {{mark({.what = "$@", .line = line}), line, true}};
}

std::optional<ShellWord> ShellVariables::argument(std::int64_t number) const {
  for (const ShellWord& word : arguments) {
    if (may_split(word) || --number == 0) {
      return word;
    }
  }
  return std::nullopt;
}

std::optional<std::string> ShellVariables::separators() const {
  const auto found = values.find("IFS");
  const std::string text = found == values.end()         ? kBlanks
                           : found->second.items.empty() ? ""
                                                         : found->second.items.front().text;
  return text == kBlanks ? " \t\n\r" : as_condition(text);
}

std::string ShellVariables::mark(ShellUnknown unknown) {
  unknowns.push_back(std::move(unknown));
  return kMarkBegin + std::to_string(unknowns.size() - 1) + kMarkEnd;
}

const ShellUnknown* ShellVariables::unknown_in(std::string_view text) const {
  const std::size_t begin = text.find(kMarkBegin);
  if (begin == std::string_view::npos) {
    return nullptr;
  }
  const std::size_t end = text.find(kMarkEnd, begin);
  const auto number = to_int(text.substr(begin + 1, end - begin - 1));
  LOCKSTEP_CHECK(number && *number >= 0 && *number < static_cast<std::int64_t>(unknowns.size()),
                 "a marker numbers an unknown");
  return &unknowns[static_cast<std::size_t>(*number)];
}

std::optional<std::string> ShellVariables::as_condition(std::string_view text) const {
  std::string known;
  while (const ShellUnknown* unknown = unknown_in(text)) {
    if (!unknown->unset || unknown->words > 0) {  // a number, where it counts
      return std::nullopt;
    }
    known += text.substr(0, text.find(kMarkBegin));
    text.remove_prefix(text.find(kMarkEnd) + 1);
  }
  return known += text;
}

bool ShellVariables::is_nothing(std::string_view text) const {
  const std::optional<std::string> known = as_condition(text);
  return known.has_value() && trim(*known).empty();
}

bool ShellVariables::is_something(std::string_view text) const {
  while (const ShellUnknown* unknown = unknown_in(text)) {
    if (unknown->words > 0 || text.front() != kMarkBegin) {
      return true;
    }
    text.remove_prefix(text.find(kMarkEnd) + 1);
  }
  return !text.empty();
}

bool ShellVariables::may_split(const ShellWord& word) const {
  std::string_view text = word.text;
  while (word.loose && unknown_in(text) != nullptr) {
    const ShellUnknown& unknown = *unknown_in(text);
    if (!unknown.unset && unknown.words != 1) {
      return true;
    }
    text.remove_prefix(text.find(kMarkEnd) + 1);
  }
  return false;
}

void ShellVariables::drop_nothing(std::vector<ShellWord>& words) const {
  std::erase_if(words, [&](const ShellWord& word) { return word.loose && is_nothing(word.text); });
}

std::size_t ShellVariables::size() const {
  std::size_t characters = 0;
  for (const auto& [name, value] : values) {
    characters += name.size();
    for (const ShellWord& item : value.items) {
      characters += 1 + item.text.size();
    }
  }
  for (const ShellWord& word : arguments) {
    characters += 1 + word.text.size();
  }
  return characters;
}

void ShellVariables::spend(std::size_t characters, const std::string& file, std::size_t line) {
  budget -= static_cast<std::int64_t>(characters);
  if (budget < 0) {
    throw Error("the variables of this script grow without end").at(file, line);
  }
}

}  // namespace lockstep
