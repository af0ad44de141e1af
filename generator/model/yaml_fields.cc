#include "generator/model/yaml_fields.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {
namespace {

std::size_t line_of(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? 0 : static_cast<std::size_t>(mark.line) + 1;
}

}  // namespace

Error yaml_error(std::string message, const YAML::Node& node, const std::string& file,
                 std::string_view field) {
  return Error(std::move(message)).at(file, line_of(node)).field(field);
}

YamlFields::YamlFields(const YAML::Node& node, std::string file, std::string field)
    : node_(node), file_(std::move(file)), field_(std::move(field)) {
  if (!node.IsMap()) {
    throw yaml_error("not a mapping", node, file_, field_).expected("key: value, …");
  }
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) {
      throw yaml_error("a key that is no word", entry.first, file_, field_);
    }
    if (!keys_.insert(entry.first.Scalar()).second) {
      throw yaml_error(fmt::format("the key '{}' stands twice", printable(entry.first.Scalar())),
                       entry.first, file_, field_);
    }
  }
}

void YamlFields::allow(std::span<const std::string_view> known) const {
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      Error error =
          yaml_error(fmt::format("unknown key '{}'", printable(key)), entry.first, file_, field_)
              .expected(join(known, ", "));
      const std::string_view near = closest(key, known);
      throw near.empty() ? error : std::move(error).hint(fmt::format("did you mean {}?", near));
    }
  }
}

YAML::Node YamlFields::at(std::string_view key) const {
  if (!has(key)) {
    throw error(fmt::format("'{}' is missing", key));
  }
  return node_[std::string(key)];
}

std::string YamlFields::text(std::string_view key) const {
  const YAML::Node value = at(key);
  if (!value.IsScalar()) {
    throw error("not a single value", key);
  }
  return value.Scalar();
}

std::size_t YamlFields::choice(std::string_view key,
                               std::span<const std::string_view> words) const {
  const std::string word = text(key);
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) {
    return static_cast<std::size_t>(found - words.begin());
  }
  Error problem =
      error(fmt::format("unknown {} '{}'", key, printable(word)), key).expected(join(words, ", "));
  const std::string_view near = closest(word, words);
  throw near.empty() ? problem : std::move(problem).hint(fmt::format("did you mean {}?", near));
}

ExpressionPlace YamlFields::place(std::string_view key) const {
  return {file_, line_of(at(key)),
          field_.empty() ? std::string(key) : fmt::format("{}.{}", field_, key)};
}

Error YamlFields::error(std::string message, std::string_view key) const {
  if (key.empty()) {
    return yaml_error(std::move(message), node_, file_, field_);
  }
  const ExpressionPlace where = place(key);
  return Error(std::move(message)).at(where.file, where.line).field(where.field);
}

double YamlFields::number(std::string_view key, const Variables& variables) const {
  return evaluate(text(key), variables, place(key));
}

std::int64_t YamlFields::whole(std::string_view key, const Variables& variables, std::int64_t low,
                               std::int64_t high) const {
  return evaluate_whole(text(key), variables, place(key), low, high);
}

std::int64_t YamlFields::whole_or(std::string_view key, const Variables& variables,
                                  std::int64_t low, std::int64_t high,
                                  std::int64_t otherwise) const {
  return has(key) ? whole(key, variables, low, high) : otherwise;
}

bool YamlFields::flag_or(std::string_view key, const Variables& variables, bool otherwise) const {
  if (!has(key)) {
    return otherwise;
  }
  const std::string word = text(key);
  return word == "true" || (word != "false" && whole(key, variables, 0, 1) == 1);
}

}  // namespace lockstep
