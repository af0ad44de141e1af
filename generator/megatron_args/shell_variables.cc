#include "generator/megatron_args/shell_variables.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

void ShellVariables::set(std::string_view name, std::string text, std::size_t line) {
  values.insert_or_assign(std::string(name), Value{{{std::move(text), line}}, false});
}

void ShellVariables::append(std::string_view name, std::string_view text, std::size_t line) {
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
  const std::string unknown =
      mark({.what = "$" + std::string(name), .line = line, .addition = !glued});
  Value& value = values[std::string(name)];
  if (value.array || value.items.empty()) {
    value.items.push_back({unknown, line, true});
    return;
  }
  value.items.front().text += glued ? unknown : " " + unknown + " ";
}

void ShellVariables::unset(std::string_view name) {
  if (const auto found = values.find(name); found != values.end()) {
    values.erase(found);
  }
}

std::vector<ShellWord> ShellVariables::arguments() const {
  std::vector<ShellWord> words;
  for (auto found = values.find("1"); found != values.end() && !found->second.items.empty();
       found = values.find(std::to_string(words.size() + 1))) {
    words.push_back(found->second.items.front());
  }
  return words;
}

void ShellVariables::set_arguments(std::span<const ShellWord> words) {
  for (std::size_t old = arguments().size(); old > words.size(); --old) {
    unset(std::to_string(old));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    values.insert_or_assign(std::to_string(i + 1), Value{{words[i]}, false});
  }
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
    if (!unknown->unset) {
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

void ShellVariables::spend(std::size_t characters, const std::string& file, std::size_t line) {
  budget -= static_cast<std::int64_t>(characters);
  if (budget < 0) {
    throw Error("the variables of this script grow without end").at(file, line);
  }
}

}  // namespace lockstep
