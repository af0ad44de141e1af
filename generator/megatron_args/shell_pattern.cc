#include "generator/megatron_args/shell_pattern.h"

#include <array>

namespace lockstep {
namespace {

struct Class {
  std::string_view name;
  std::string_view ranges;  ///< pairs of first and last
};
constexpr auto kClasses = std::to_array<Class>({{"[:digit:]", "09"},
                                                {"[:alpha:]", "azAZ"},
                                                {"[:alnum:]", "azAZ09"},
                                                {"[:lower:]", "az"},
                                                {"[:upper:]", "AZ"},
                                                {"[:space:]", "\t\r  "}});

bool in_ranges(std::string_view ranges, char c) {
  for (std::size_t i = 0; i + 1 < ranges.size(); i += 2) {
    if (ranges[i] <= c && c <= ranges[i + 1]) {
      return true;
    }
  }
  return false;
}

const Class* class_at(std::string_view pattern) {
  for (const Class& each : kClasses) {
    if (pattern.starts_with(each.name)) {
      return &each;
    }
  }
  return nullptr;
}

constexpr std::size_t kMaxSet = 256;  // letters between brackets, so that a search for ']' is short

/// Where the […] at pattern[begin] ends, behind the ']'; 0: it is a letter like any other.
std::size_t end_of_set(std::string_view pattern, std::size_t begin) {
  pattern = pattern.substr(0, begin + kMaxSet);
  std::size_t i = begin + 1;
  i += i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^') ? 1U : 0U;
  i += i < pattern.size() && pattern[i] == ']' ? 1U : 0U;
  while (i < pattern.size() && pattern[i] != ']') {
    const Class* const found = class_at(pattern.substr(i));
    i += found != nullptr ? found->name.size() : pattern[i] == '\\' ? 2 : 1;
  }
  return i < pattern.size() ? i + 1 : 0;
}

/// `set` with its brackets.
bool in_set(std::string_view set, char c) {
  std::size_t i = 1;
  const bool negated = set[i] == '!' || set[i] == '^';
  i += negated ? 1 : 0;
  bool found = false;
  while (i + 1 < set.size()) {
    if (const Class* const kind = class_at(set.substr(i)); kind != nullptr) {
      found = found || in_ranges(kind->ranges, c);
      i += kind->name.size();
      continue;
    }
    i += set[i] == '\\' && i + 2 < set.size() ? 1U : 0U;
    if (i + 3 < set.size() && set[i + 1] == '-' && set[i + 2] != '\\') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 3;
    } else {
      found = found || set[i] == c;
      ++i;
    }
  }
  return found != negated;
}

bool is_understood(std::string_view pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    const std::string_view two = pattern.substr(i, 2);
    if (two[0] == '\\') {
      ++i;
      continue;
    }
    const bool list = two[1] == '(' && std::string_view("?*+@!").find(two[0]) != two.npos;
    const bool kind = two == "[=" || two == "[." ||
                      (two == "[:" && i > 0 && class_at(pattern.substr(i)) == nullptr);
    if (list || kind) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::size_t shell_match_cost(std::string_view text, std::string_view pattern) {
  const bool again = pattern.find('*') != std::string_view::npos;
  return text.size() * (again ? pattern.size() / 100 + 1 : 1);
}

std::optional<bool> shell_matches(std::string_view text, std::string_view pattern) {
  if (!is_understood(pattern)) {
    return std::nullopt;
  }
  std::size_t t = 0, p = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    const char c = p < pattern.size() ? pattern[p] : '\0';
    const std::size_t set_end = c == '[' ? end_of_set(pattern, p) : 0;
    const bool escaped = c == '\\' && p + 1 < pattern.size();
    const bool same = p < pattern.size() && c != '*' &&
                      (set_end > 0 ? in_set(pattern.substr(p, set_end - p), text[t])
                       : escaped   ? pattern[p + 1] == text[t]
                                   : c == '?' || c == text[t]);
    if (same) {
      ++t;
      p = set_end > 0 ? set_end : p + (escaped ? 2 : 1);
    } else if (p < pattern.size() && c == '*') {
      star = p++;
      from = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

}  // namespace lockstep
