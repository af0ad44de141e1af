#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

/// What a YAML file is refused for by yaml-cpp, with its place. Nesting beyond what that library
/// reads is "bad file" in its words; here the limit is told. For code that links yaml-cpp.
inline Error yaml_problem(const YAML::Exception& problem, const std::string& file) {
  const bool known = !problem.mark.is_null();
  const std::size_t line = known ? static_cast<std::size_t>(problem.mark.line) + 1 : 0;
  const std::size_t column = known ? static_cast<std::size_t>(problem.mark.column) + 1 : 0;
  if (const auto* deep = dynamic_cast<const YAML::DeepRecursion*>(&problem)) {
    return Error("lists and mappings stand too deep in each other")
        .at(file, line, column)
        .expected(fmt::format("less than {} levels", deep->depth()));
  }
  return Error(fmt::format("no YAML: {}", printable(problem.msg))).at(file, line, column);
}

/// A YAML document. ERRORS: yaml_problem(), require_utf8().
inline YAML::Node load_yaml(std::string_view text, const std::string& file) {
  require_utf8(text, file);
  try {
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception& problem) {
    throw yaml_problem(problem, file);
  }
}

}  // namespace lockstep
