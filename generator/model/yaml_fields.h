#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "generator/model/expression.h"

namespace lockstep {

/// A YAML mapping whose keys are known, and its values as expressions over variables.
class YamlFields {
 public:
  /// ERRORS: `node` is no mapping, or has a key that is no scalar or stands twice.
  YamlFields(const YAML::Node& node, std::string file, std::string field);

  /// ERRORS: a key that is not in `known` (with the nearest).
  void allow(std::span<const std::string_view> known) const;
  bool has(std::string_view key) const { return keys_.count(std::string(key)) > 0; }
  /// ERRORS: absent.
  YAML::Node at(std::string_view key) const;
  /// ERRORS: absent or no scalar.
  std::string text(std::string_view key) const;
  double number(std::string_view key, const Variables& variables) const;
  std::int64_t whole(std::string_view key, const Variables& variables, std::int64_t low,
                     std::int64_t high) const;
  std::int64_t whole_or(std::string_view key, const Variables& variables, std::int64_t low,
                        std::int64_t high, std::int64_t otherwise) const;
  /// "true", "false" or an expression that is 0 or 1.
  bool flag_or(std::string_view key, const Variables& variables, bool otherwise) const;

  /// Which of `words` the value is. ERRORS: none of them (with the nearest).
  std::size_t choice(std::string_view key, std::span<const std::string_view> words) const;

  ExpressionPlace place(std::string_view key) const;
  Error error(std::string message, std::string_view key = {}) const;
  const std::string& file() const { return file_; }

 private:
  YAML::Node node_;
  std::string file_, field_;
  std::set<std::string> keys_;
};

/// An Error at a node.
Error yaml_error(std::string message, const YAML::Node& node, const std::string& file,
                 std::string_view field);

}  // namespace lockstep
