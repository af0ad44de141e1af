#include "simulator/replay/straggler.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {
namespace {

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return result;
}

}  // namespace

std::string usage_of(const StragglerModel& model) {
  std::string usage(model.name), close;
  for (const StragglerField& field : model.fields) {
    usage += (field.otherwise.empty() ? ":" : "[:") + upper(field.name);
    close += field.otherwise.empty() ? "" : "]";
  }
  return usage + close + "[@FROM[-UNTIL]]";
}

bool keep_rings(std::span<const Straggler> stragglers) {
  return std::ranges::any_of(stragglers,
                             [](const Straggler& each) { return each.model().keeps_rings; });
}

bool fail_links(std::span<const Straggler> stragglers) {
  return std::ranges::any_of(stragglers,
                             [](const Straggler& each) { return each.model().fails_links; });
}

std::string straggler_help() {
  std::string text;
  for (const StragglerModel* model : straggler_models()) {
    text += fmt::format("{}\n    {}\n", usage_of(*model), model->summary);
    for (const StragglerField& field : model->fields) {
      text += fmt::format("    {:<10} {}{}\n", upper(field.name), field.help,
                          field.otherwise.empty() ? "" : fmt::format(" ({})", field.otherwise));
    }
  }
  return text;
}

const StragglerModel& straggler_model_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const StragglerModel* model : straggler_models()) {
    if (model->name == name) {
      return *model;
    }
    names.push_back(model->name);
  }
  const std::string_view near = closest(name, names);
  throw Error(fmt::format("there is no straggler model '{}'", printable(name)))
      .expected(join(names, ", "))
      .hint(near.empty() ? std::string() : fmt::format("did you mean {}?", near));
}

Error Straggler::error(std::string message) const {
  return Error(std::move(message))
      .field((file_.empty() ? "--straggler " : "") + printable(text_))
      .expected(usage_of(*model_));
}

Error Straggler::error(std::size_t field, std::string message) const {
  return error(fmt::format("{}: {}", upper(model_->fields[field].name), message));
}

Straggler Straggler::parse(std::string_view spec) {
  Straggler result;
  result.text_ = spec;
  std::string_view body = spec, from, until;
  if (const std::size_t at = spec.rfind('@'); at != std::string_view::npos) {
    body = spec.substr(0, at);
    from = spec.substr(at + 1);
    if (const std::size_t dash = from.find('-'); dash != std::string_view::npos) {
      until = from.substr(dash + 1);
      from = from.substr(0, dash);
    }
    if (from.empty()) {
      throw Error(until.empty() ? "nothing stands behind the @" : "FROM: is missing or negative")
          .field("--straggler " + printable(spec))
          .expected("a time such as 10ms, or from and until such as 10ms-20ms");
    }
  }
  std::vector<std::string_view> parts = split(body, ':');
  try {
    result.model_ = &straggler_model_named(parts.front());
  } catch (Error& error) {
    throw std::move(error).field("--straggler " + printable(spec));
  }
  parts.erase(parts.begin());
  if (parts.size() > result.model_->fields.size()) {
    throw result.error(
        fmt::format("'{}' is one field too many", printable(parts[result.model_->fields.size()])));
  }
  result.values_.assign(parts.begin(), parts.end());
  result.settle(from, until);
  return result;
}

Straggler Straggler::make(const StragglerModel& model, std::span<const Value> values,
                          std::string_view from, std::string_view until) {
  Straggler result;
  result.model_ = &model;
  result.values_.resize(model.fields.size());
  for (const Value& value : values) {
    const auto field = std::ranges::find(model.fields, value.field, &StragglerField::name);
    LOCKSTEP_CHECK(field != model.fields.end(), "values are of the model's fields");
    result.values_[static_cast<std::size_t>(field - model.fields.begin())] = value.text;
  }
  while (!result.values_.empty() && result.values_.back().empty()) {
    result.values_.pop_back();
  }
  result.text_ = model.name;
  for (const std::string& value : result.values_) {
    result.text_ += ":" + value;
  }
  if (!from.empty() || !until.empty()) {
    result.text_ += fmt::format("@{}", from.empty() ? "0s" : from);
    result.text_ += until.empty() ? "" : fmt::format("-{}", until);
  }
  result.settle(from.empty() && !until.empty() ? "0s" : from, until);
  return result;
}

void Straggler::settle(std::string_view from, std::string_view until) {
  for (std::size_t i = 0; i < model_->fields.size(); ++i) {
    if (i >= values_.size()) {
      values_.emplace_back();
    }
    if (values_[i].empty()) {
      if (model_->fields[i].otherwise.empty()) {
        throw error(i, "is missing");
      }
      values_[i] = model_->fields[i].otherwise;
    }
  }
  const auto date = [&](std::string_view what, std::string_view text) {
    try {
      return parse_time(text);
    } catch (const Error&) {
      throw error(fmt::format("{}: '{}' is no time such as 10ms", what, printable(text)));
    }
  };
  from_ = from.empty() ? Time() : date("FROM", from);
  until_ = until.empty() ? Time::max() : date("UNTIL", until);
  if (from_ < Time() || until_ <= from_) {
    throw error("UNTIL: is not after FROM");
  }
}

double Straggler::number(std::size_t field, double low, double high) const {
  const auto value = to_double(values_[field]);
  if (!value || *value < low || *value > high) {
    throw error(field, fmt::format("'{}' is no number from {} to {}", printable(values_[field]),
                                   low, high));
  }
  return *value;
}

Time Straggler::time(std::size_t field) const {
  try {
    const Time value = parse_time(values_[field]);
    if (value >= Time()) {
      return value;
    }
  } catch (const Error&) {
  }
  throw error(field, fmt::format("'{}' is no time such as 10ms", printable(values_[field])));
}

Bandwidth Straggler::bandwidth(std::size_t field) const {
  try {
    return parse_bandwidth(values_[field]);
  } catch (const Error&) {
    throw error(field,
                fmt::format("'{}' is no bandwidth such as 50Gbps", printable(values_[field])));
  }
}

std::vector<std::int32_t> Straggler::set(std::size_t field, std::int64_t count,
                                         std::string_view what) const {
  std::vector<char> chosen(static_cast<std::size_t>(count), 0);
  for (const std::string_view part : split(values_[field], ',')) {
    const std::size_t dash = part.find('-');
    auto first = whole(part.substr(0, dash)), last = first;
    if (part == "*") {
      first = 0;
      last = count - 1;
    } else if (dash != std::string_view::npos) {
      last = whole(part.substr(dash + 1));
    }
    if (!first || !last || *first > *last) {
      throw error(field, fmt::format("'{}' names no {}: a number, a range such as 0-7, or *",
                                     printable(part), what));
    }
    if (*last >= count) {
      throw error(field,
                  fmt::format("there is no {} {}; there are {}, from 0", what, *last, count));
    }
    std::fill(chosen.begin() + *first, chosen.begin() + *last + 1, 1);
  }
  std::vector<std::int32_t> result;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] != 0) {
      result.push_back(static_cast<std::int32_t>(i));
    }
  }
  return result;
}

std::pair<std::int64_t, std::int64_t> Straggler::pair(std::size_t field) const {
  const std::string_view text = values_[field];
  const std::size_t dash = text.find('-');
  const auto a = whole(text.substr(0, dash));
  const auto b = dash == std::string_view::npos ? std::nullopt : whole(text.substr(dash + 1));
  if (!a || !b) {
    throw error(field, fmt::format("'{}' is no pair such as 12-40", printable(text)));
  }
  return {*a, *b};
}

std::size_t Straggler::word(std::size_t field, std::span<const std::string_view> words) const {
  const auto found = std::ranges::find(words, values_[field]);
  if (found == words.end()) {
    throw error(field,
                fmt::format("'{}' is none of {}", printable(values_[field]), join(words, ", ")));
  }
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace lockstep
