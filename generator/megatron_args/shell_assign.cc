#include "generator/megatron_args/shell_assign.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/text.h"
#include "generator/megatron_args/shell_arithmetic.h"
#include "generator/megatron_args/shell_expand.h"

namespace lockstep {
namespace {

bool is_name_letter(char c) { return is_shell_name(std::string{'_', c}); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

void assign_array(const ShellTarget& target, const ShellToken& token, const std::string& file,
                  ShellVariables& variables) {
  std::vector<ShellWord> items;
  for (const ShellToken& element : token.elements) {
    if (element.text.starts_with('[') && element.text.find("]=") != std::string::npos) {
      variables.forget(target.name, token.line);  // [key]=value: which is which is not followed
      return;
    }
    std::ranges::move(expand_word(element.text, element.line, file, variables),
                      std::back_inserter(items));
  }
  if (variables.odd.contains(target.name) || variables.integers.contains(target.name)) {
    variables.forget(target.name, token.line);
    return;
  }
  ShellVariables::Value& value = variables.values[target.name];
  if (!target.more) {
    value.items.clear();
  }
  value.array = true;
  value.items.insert(value.items.end(), items.begin(), items.end());
}

void assign_element(const ShellTarget& target, const ShellToken& token, std::string text,
                    const std::string& file, ShellVariables& variables) {
  const std::optional<std::int64_t> index = shell_index(target.index, token.line, file, variables);
  const auto old = variables.values.find(target.name);
  const bool has = old != variables.values.end();
  if (has) {
    variables.drop_nothing(old->second.items);
  }
  const std::int64_t size = has ? std::ssize(old->second.items) : 0;
  const bool countable = !has || std::ranges::none_of(old->second.items, [&](auto& item) {
    return variables.may_split(item);
  });
  if (!index || *index < 0 || *index > size || !countable || variables.odd.contains(target.name) ||
      variables.integers.contains(target.name)) {
    variables.forget(target.name, token.line);
    return;
  }
  ShellVariables::Value& value = variables.values[target.name];
  value.array = true;
  if (*index == size) {
    value.items.push_back({"", token.line});
  }
  ShellWord& item = value.items[static_cast<std::size_t>(*index)];
  item = {target.more ? item.text + text : std::move(text), token.line};
}

/// What stands at `text`'s begin is $NAME, ${NAME} or ${NAME[@]}, and then a blank or nothing.
bool begins_with(std::string_view text, std::string_view name) {
  if (text.starts_with("${")) {
    text.remove_prefix(1);
  } else if (!text.starts_with('$')) {
    return false;
  }
  const bool braces = text[0] == '{';
  text.remove_prefix(1);
  if (!text.starts_with(name)) {
    return false;
  }
  text.remove_prefix(name.size());
  text.remove_prefix(text.starts_with("[@]") || text.starts_with("[*]") ? 3 : 0);
  if (braces) {
    text.remove_prefix(text.starts_with('}') ? 1 : 0);
  }
  text.remove_prefix(text.starts_with('"') ? 1 : 0);
  return text.empty() || is_blank(text.front());
}

}  // namespace

std::optional<ShellTarget> shell_target(const ShellToken& token) {
  const std::string_view text = token.text;
  std::size_t end = 0;
  while (end < text.size() && is_name_letter(text[end])) {
    ++end;
  }
  ShellTarget target;
  target.name = text.substr(0, end);
  if (!is_shell_name(target.name)) {
    return std::nullopt;
  }
  if (end < text.size() && text[end] == '[') {
    const std::size_t close = std::min(text.find("]=", end), text.find("]+=", end));
    if (close == std::string_view::npos || close == end + 1) {
      return std::nullopt;
    }
    target.index = text.substr(end + 1, close - end - 1);
    end = close + 1;
  }
  target.more = text.substr(end).starts_with("+=");
  end += target.more ? 1 : 0;
  if (end >= text.size() || text[end] != '=') {
    return std::nullopt;
  }
  target.value = end + 1;
  return target;
}

void assign_shell(const ShellToken& token, const std::string& file, ShellVariables& variables) {
  const std::optional<ShellTarget> target = shell_target(token);
  if (!target) {
    return;
  }
  if (token.kind == ShellToken::Kind::kArray) {
    assign_array(*target, token, file, variables);
    return;
  }
  std::string text =
      expand_text(std::string_view(token.text).substr(target->value), token.line, file, variables);
  if (variables.integers.contains(target->name) && target->index.empty()) {
    const std::string sum = target->more ? "${" + target->name + "}+(" + text + ")" : text;
    variables.set(target->name, expand_text("$((" + sum + "))", token.line, file, variables),
                  token.line);
  } else if (!target->index.empty()) {
    assign_element(*target, token, std::move(text), file, variables);
  } else if (target->more) {
    variables.append(target->name, text, token.line);
  } else if (const auto old = variables.values.find(target->name);
             old != variables.values.end() && old->second.array && !old->second.items.empty()) {
    assign_element({target->name, "0", false, 0}, token, std::move(text), file, variables);
  } else {
    variables.set(target->name, std::move(text), token.line);
  }
}

void forget_shell(const ShellToken& token, ShellVariables& variables) {
  const std::optional<ShellTarget> target = shell_target(token);
  if (!target) {
    return;
  }
  const bool array = token.kind == ShellToken::Kind::kArray;
  std::string_view value = std::string_view(token.text).substr(target->value);
  if (array) {
    value = token.elements.empty() ? std::string_view() : token.elements.front().text;
  }
  value.remove_prefix(value.starts_with('"') ? 1 : 0);
  if (target->more || begins_with(value, target->name)) {
    const bool glued = target->more && !array && (value.empty() || !is_blank(value.front()));
    variables.forget_addition(target->name, glued, token.line);
  } else {
    variables.forget(target->name, token.line);
  }
}

void forget_inside(std::string_view text, std::size_t line, ShellVariables& variables) {
  for (std::size_t at = text.find("${"); at != std::string_view::npos; at = text.find("${", at)) {
    at += 2;
    std::size_t end = at;
    while (end < text.size() && is_name_letter(text[end])) {
      ++end;
    }
    const std::string_view name = text.substr(at, end - at), rest = text.substr(end);
    if (is_shell_name(name) && (rest.starts_with('=') || rest.starts_with(":="))) {
      variables.forget(name, line);
    }
  }
  if (text.find("$((") != std::string_view::npos && changes_shell_variable(text)) {
    forget_names(std::string(text), line, variables);
  }
}

void forget_names(std::string text, std::size_t line, ShellVariables& variables) {
  std::ranges::replace_if(
      text, [](char c) { return !is_name_letter(c); }, ' ');
  for (const std::string_view word : split_blanks(text)) {
    if (is_shell_name(word)) {
      variables.forget(word, line);
    }
  }
}

}  // namespace lockstep
