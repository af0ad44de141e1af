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

void ShellVariables::spend(std::size_t characters, const std::string& file, std::size_t line) {
  budget -= static_cast<std::int64_t>(characters);
  if (budget < 0) {
    throw Error("the variables of this script grow without end").at(file, line);
  }
}

}  // namespace lockstep
