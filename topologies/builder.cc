#include "topologies/builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "topologies/topology_maker.h"

namespace lockstep {
namespace {

std::string normal(std::string_view name) {
  std::string out = to_lower(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

bool names_include(std::string_view names, std::string_view name) {
  const std::string wanted = normal(name);
  const std::vector<std::string_view> list = split_blanks(names);
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view n) { return normal(n) == wanted; });
}

std::string_view first_name(std::string_view names) { return names.substr(0, names.find(' ')); }

/// "--gpu (-g)": as the user may write it.
std::string spelled(std::string_view names) {
  std::string out;
  for (const std::string_view name : split_blanks(names)) {
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ",
                       name.size() > 4 || out.empty() ? "--" : "-", name);
  }
  return out;
}

std::vector<std::int64_t> parse_shape(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (const std::string_view part : split(text, 'x')) {
    sizes.push_back(to_int(part).value_or(-1));
  }
  return sizes;
}

void check_value(const BuilderFlag& flag, std::string_view value) {
  const auto wrong = [&](std::string_view expected) {
    return Error(fmt::format("'{}' does not fit", printable(value)))
        .field(fmt::format("flag {}", first_name(flag.names)))
        .expected(expected);
  };
  switch (flag.kind) {
    case FlagKind::kCount: {
      const std::optional<std::int64_t> count = to_int(value);
      if (!count || *count < flag.low || *count > flag.high) {
        throw wrong(fmt::format("a whole number from {} to {}", flag.low, flag.high));
      }
      return;
    }
    case FlagKind::kSwitch:
      if (value != "true" && value != "false") {
        throw wrong("true or false, or no value for true");
      }
      return;
    case FlagKind::kRate:
    case FlagKind::kDelay:
      try {
        if (flag.kind == FlagKind::kDelay) {
          parse_link_delay(value);
        } else {
          parse_link_rate(value);
        }
      } catch (Error& problem) {
        throw std::move(problem).field(fmt::format("flag {}", first_name(flag.names)));
      }
      [[fallthrough]];
    case FlagKind::kWord:
      if (split_blanks(value).size() != 1 || trim(value).size() != value.size()) {
        throw wrong("one word, without blanks");
      }
      return;
    case FlagKind::kProbability: {
      const std::optional<double> p = to_double(value);
      if (!p || *p < 0 || *p > 1) {
        throw wrong("a number from 0 to 1");
      }
      return;
    }
    case FlagKind::kRatio: {
      const std::optional<double> ratio = to_double(value);
      if (!ratio || *ratio <= 0 || *ratio > 1e6) {
        throw wrong("a number above 0, up to 1e6");
      }
      return;
    }
    case FlagKind::kShape:
      for (const std::int64_t size : parse_shape(value)) {
        if (size < flag.low || size > flag.high) {
          throw wrong(
              fmt::format("sizes from {} to {} joined by x, such as 4x4x4", flag.low, flag.high));
        }
      }
      return;
  }
}

}  // namespace

FlagValues::FlagValues(const TopologyBuilder& builder)
    : builder_(&builder), given_(builder.flags.size()) {
  for (const BuilderFlag& flag : builder.flags) {
    values_.emplace_back(flag.fallback);
  }
}

FlagValues FlagValues::from_compact(const TopologyBuilder& builder, std::string_view text) {
  FlagValues flags(builder);
  if (trim(text).empty()) {
    return flags;
  }
  for (const std::string_view argument : split(text, ',')) {
    const std::size_t equals = argument.find('=');
    const bool has_value = equals != std::string_view::npos;
    flags.set(trim(argument.substr(0, equals)), has_value ? trim(argument.substr(equals + 1)) : "",
              has_value);
  }
  return flags;
}

FlagValues FlagValues::from_words(const TopologyBuilder& builder,
                                  std::span<const std::string> words) {
  FlagValues flags(builder);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::size_t dashes = word.starts_with("--") ? 2 : 1;
    if (!word.starts_with('-') || word.size() == dashes) {
      throw Error(fmt::format("'{}' is no flag", printable(word)))
          .expected(fmt::format("flags of the template {}, such as --{} {}", builder.name,
                                first_name(builder.flags[0].names), builder.flags[0].fallback));
    }
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals).substr(dashes);
    if (equals != std::string_view::npos) {
      flags.set(name, word.substr(equals + 1), true);
    } else if (builder.flags[flags.index(name)].kind == FlagKind::kSwitch) {
      flags.set(name, "", false);
    } else if (i + 1 == words.size()) {
      throw Error("the flag needs a value").field(word);
    } else {
      flags.set(name, words[++i], true);
    }
  }
  return flags;
}

std::size_t FlagValues::index(std::string_view name) const {
  std::vector<std::string_view> known, first;
  for (std::size_t i = 0; i < builder_->flags.size(); ++i) {
    first.push_back(first_name(builder_->flags[i].names));
    if (names_include(builder_->flags[i].names, name)) {
      return i;
    }
    for (const std::string_view spelling : split_blanks(builder_->flags[i].names)) {
      known.push_back(spelling);
    }
  }
  const std::string_view near = closest(normal(name), known);
  throw Error(fmt::format("the template {} has no flag '{}'", builder_->name, printable(name)))
      .expected("one of " + join(first, ", "))
      .hint(near.empty() ? "" : fmt::format("did you mean {}?", near));
}

void FlagValues::set(std::string_view name, std::string_view value, bool has_value) {
  const std::size_t i = index(name);
  const BuilderFlag& flag = builder_->flags[i];
  if (given_[i]) {
    throw Error(fmt::format("the flag {} is given twice", first_name(flag.names)));
  }
  if (!has_value) {
    if (flag.kind != FlagKind::kSwitch) {
      throw Error("the flag needs a value")
          .field(fmt::format("flag {}", first_name(flag.names)))
          .expected(fmt::format("{}={}", name, flag.fallback));
    }
    value = "true";
  }
  check_value(flag, value);
  values_[i] = value;
  given_[i] = true;
}

std::int64_t FlagValues::count(std::string_view name) const { return *to_int(text(name)); }
bool FlagValues::on(std::string_view name) const { return text(name) == "true"; }
double FlagValues::ratio(std::string_view name) const { return *to_double(text(name)); }
const std::string& FlagValues::text(std::string_view name) const { return values_[index(name)]; }
bool FlagValues::given(std::string_view name) const { return given_[index(name)]; }
std::vector<std::int64_t> FlagValues::shape(std::string_view name) const {
  return parse_shape(text(name));
}

const TopologyBuilder* find_topology_builder(std::string_view name) {
  for (const TopologyBuilder* builder : topology_builders()) {
    if (normal(builder->name) == normal(name) || names_include(builder->aliases, name)) {
      return builder;
    }
  }
  return nullptr;
}

std::string_view closest_topology_builder(std::string_view name) {
  std::vector<std::string_view> known;
  for (const TopologyBuilder* builder : topology_builders()) {
    known.push_back(builder->name);
    for (const std::string_view alias : split_blanks(builder->aliases)) {
      known.push_back(alias);
    }
  }
  return closest(name, known);
}

std::string topology_builder_names() {
  std::vector<std::string_view> names;
  for (const TopologyBuilder* builder : topology_builders()) {
    names.push_back(builder->name);
  }
  return join(names, ", ");
}

BuiltTopology build_topology(const TopologyBuilder& builder, const FlagValues& flags) {
  return with_context(fmt::format("while building the topology template {}", builder.name), [&] {
    BuiltTopology built = builder.build(flags);
    validate(built.topology);
    return built;
  });
}

std::string flag_help(const TopologyBuilder& builder) {
  std::string text;
  for (const BuilderFlag& flag : builder.flags) {
    const std::string fallback = flag.kind == FlagKind::kSwitch && flag.fallback != "true"
                                     ? ""
                                     : fmt::format(" (default {})", flag.fallback);
    text += fmt::format("  {:<44} {}{}\n", spelled(flag.names), flag.summary, fallback);
  }
  return text;
}

}  // namespace lockstep
