#include "generator/argparse.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/python_text.h"

namespace lockstep {
namespace {

std::string normalised(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

const ArgSpec* find_exact(const ArgTable& table, std::string_view name) {
  for (const ArgSpec& flag : table.flags) {
    if (flag.name == name) {
      return &flag;
    }
  }
  for (const ArgSpec& flag : table.flags) {
    const std::vector<std::string_view> aliases = split_blanks(flag.aliases);
    if (std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
      return &flag;
    }
  }
  return nullptr;
}

UnknownFlag unknown_flag(const ArgTable& table, std::string_view word) {
  std::vector<std::string_view> names;
  for (const ArgSpec& flag : table.flags) {
    names.push_back(flag.name);
    const std::vector<std::string_view> aliases = split_blanks(flag.aliases);
    names.insert(names.end(), aliases.begin(), aliases.end());
  }
  return {word, closest(normalised(word), names)};
}

const ArgSpec& find_flag(const ArgTable& table, std::string_view word) {
  const std::string name = normalised(word);
  if (const ArgSpec* exact = find_exact(table, name); exact != nullptr) {
    return *exact;
  }
  std::vector<std::string_view> matches;
  for (const ArgSpec& flag : table.flags) {
    if (!name.empty() && flag.name.starts_with(name)) {
      matches.push_back(flag.name);
    }
  }
  if (matches.empty()) {
    throw unknown_flag(table, word);
  }
  if (matches.size() > 1) {
    throw Error(fmt::format("the flag '--{}' is ambiguous", printable(word)))
        .expected("--" + join(matches, ", --"));
  }
  return *find_exact(table, matches.front());
}

/// `word` without its value: "--name", or "-x" for an alias of one letter.
const ArgSpec& flag_of_word(const ArgTable& table, std::string_view word) {
  if (word.starts_with("--")) {
    return find_flag(table, word.substr(2));
  }
  const ArgSpec* flag = word.size() == 2 ? find_exact(table, word.substr(1)) : nullptr;
  if (flag == nullptr) {
    throw unknown_flag(table, word.substr(1));
  }
  return *flag;
}

const ArgSpec& spec_of(const ArgTable& table, std::string_view name) {
  const ArgSpec* flag = find_exact(table, name);
  LOCKSTEP_CHECK(flag != nullptr, fmt::format("no flag '{}'", name));
  return *flag;
}

constexpr std::size_t kHelpColumn = 40, kHelpWidth = 100;

/// Cut into lines that end before kHelpWidth, all but the first indented to kHelpColumn.
std::string wrapped(std::string_view help) {
  std::string text;
  std::size_t column = kHelpColumn;
  for (const std::string_view word : split_blanks(help)) {
    if (column > kHelpColumn && column + 1 + word.size() > kHelpWidth) {
      text += "\n" + std::string(kHelpColumn, ' ');
      column = kHelpColumn;
    } else if (column > kHelpColumn) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
  }
  return text;
}

bool looks_like_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !to_double(word).has_value();
}

void check_value(const ArgSpec& flag, std::string_view value) {
  const std::string field = fmt::format("--{}", flag.name);
  if (flag.kind == ArgKind::kInteger) {
    const std::optional<std::int64_t> number = python_int(value);
    const std::string range =
        flag.high == std::numeric_limits<std::int64_t>::max()
            ? fmt::format("a whole number of {} or more", flag.low)
            : fmt::format("a whole number from {} to {}", flag.low, flag.high);
    if (!number.has_value()) {
      throw Error(fmt::format("'{}' is no whole number we can hold", printable(value)))
          .field(field)
          .expected(range);
    }
    if (*number < flag.low || *number > flag.high) {
      throw Error(fmt::format("{} is out of range", *number)).field(field).expected(range);
    }
  }
  const std::vector<std::string_view> choices = split_blanks(flag.choices);
  if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
    const std::string_view near = closest(value, choices);
    throw Error(fmt::format("invalid choice '{}'", printable(value)))
        .field(field)
        .expected(join(choices, ", "))
        .hint(near.empty() ? std::string() : fmt::format("did you mean '{}'?", near));
  }
}

/// Numbers are compared as such: 16, 016 and 1_6 are one.
bool same_value(std::string_view a, std::string_view b) {
  const std::optional<std::int64_t> first = python_int(a), second = python_int(b);
  if (first && second) {
    return *first == *second;
  }
  const std::optional<double> real = to_double(a), other = to_double(b);
  return a == b || (real && other && *real == *other);
}

}  // namespace

UnknownFlag::UnknownFlag(std::string_view word, std::string_view near)
    : Error(fmt::format("unknown flag '--{}'", printable(word))),
      word_(word),
      has_near_(!near.empty()) {
  std::move(*this).hint(has_near_ ? fmt::format("did you mean '--{}'?", near)
                                  : "--help lists the flags");
}

void ArgValues::set(std::string_view name, std::string_view value) {
  const ArgSpec& flag = spec_of(table_, name);
  check_value(flag, value);
  values_.insert_or_assign(std::string(flag.name), std::string(value));
}

void ArgValues::set_default(std::string_view name, std::string_view value) {
  if (!given(name)) {
    set(name, value);
  }
}

std::optional<std::string> ArgValues::text_if(std::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) {
    return found->second;
  }
  const ArgSpec& flag = spec_of(table_, name);
  return flag.fallback.empty() ? std::nullopt : std::optional(std::string(flag.fallback));
}

std::string ArgValues::text(std::string_view name) const {
  const std::optional<std::string> value = text_if(name);
  LOCKSTEP_CHECK(value.has_value(), fmt::format("flag '{}' has no value", name));
  return *value;
}

std::optional<std::int64_t> ArgValues::integer_if(std::string_view name) const {
  const std::optional<std::string> value = text_if(name);
  return value.has_value() ? python_int(*value) : std::nullopt;
}

std::int64_t ArgValues::integer(std::string_view name) const {
  const std::optional<std::int64_t> value = integer_if(name);
  LOCKSTEP_CHECK(value.has_value(), fmt::format("flag '{}' has no number", name));
  return *value;
}

ArgValues parse_args(const ArgTable& table, std::span<const std::string> words, Names names) {
  ArgValues values(table);
  std::map<std::string_view, std::string_view> named;  // each flag as it was last called
  const auto set = [&](const ArgSpec& flag, std::string_view name, std::string_view value) {
    if (names == Names::kOneAtATime && flag.kind != ArgKind::kSwitch && values.given(flag.name)) {
      check_names(flag.name, name, value, named[flag.name], values.text(flag.name));
    }
    named[flag.name] = name;
    values.set(flag.name, value);
  };
  std::size_t positional = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!looks_like_flag(word)) {
      if (positional == table.positionals.size()) {
        throw Error(fmt::format("unexpected argument '{}'", printable(word)))
            .hint("flags begin with '--'");
      }
      values.set(table.positionals[positional++], word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const ArgSpec& flag = flag_of_word(table, word.substr(0, equals));
    if (flag.kind == ArgKind::kSwitch) {
      if (equals != std::string_view::npos) {
        throw Error("this flag takes no value").field(fmt::format("--{}", flag.name));
      }
      set(flag, word, "");
    } else if (equals != std::string_view::npos) {
      set(flag, word.substr(0, equals), word.substr(equals + 1));
    } else if (i + 1 < words.size() && !looks_like_flag(words[i + 1])) {
      set(flag, word, words[++i]);
    } else {
      throw Error("this flag needs a value").field(fmt::format("--{}", flag.name));
    }
  }
  return values;
}

void check_names(std::string_view flag, std::string_view name, std::string_view value,
                 std::string_view earlier_name, std::string_view earlier_value) {
  if (normalised(name) == normalised(earlier_name)) {
    throw Error("is given 2 times").field(printable(name)).expected("one value");
  }
  if (!same_value(value, earlier_value)) {
    throw Error(fmt::format("{} says '{}', and {} '{}'", printable(earlier_name),
                            printable(earlier_value), printable(name), printable(value)))
        .field(fmt::format("--{}", flag))
        .expected("one of the two");
  }
}

std::string args_help(const ArgTable& table) {
  std::string text;
  for (const ArgSpec& flag : table.flags) {
    std::string names = fmt::format("--{}", flag.name);
    for (const std::string_view alias : split_blanks(flag.aliases)) {
      names += fmt::format(", {}{}", alias.size() == 1 ? "-" : "--", alias);
    }
    if (flag.kind != ArgKind::kSwitch) {
      names += flag.kind == ArgKind::kInteger ? " N" : " TEXT";
    }
    std::string help(flag.help);
    if (!flag.choices.empty()) {
      help += fmt::format(": {}", join(split_blanks(flag.choices), ", "));
    }
    if (!flag.fallback.empty()) {
      help += fmt::format(" ({})", flag.fallback);
    }
    text += fmt::format("  {:<38}", names);
    text += (names.size() < 38 ? "" : "\n" + std::string(kHelpColumn, ' ')) + wrapped(help) + "\n";
  }
  return text;
}

}  // namespace lockstep
