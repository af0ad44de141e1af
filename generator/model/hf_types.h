#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "generator/model/expression.h"

namespace lockstep {

/// A field of a config and the variable it gives: "a.b" is b of the object a, "a|b" is a, or b
/// where there is no a. An optional one may be absent or null: then the variable keeps `otherwise`
/// of the type, or the architecture's default.
struct HfField {
  std::string_view key, variable;
  bool required = true;
  std::int64_t add = 0;  ///< OPT's positions: two more than it says
};

/// A field that must have this value, or be absent or null, for the architecture to be the one.
struct HfDemand {
  std::string_view key;
  std::int64_t value;
};

/// A model_type: which architecture it is, and how its fields give the architecture's variables.
struct HfType {
  std::string_view name, architecture;
  std::vector<HfField> fields;
  Variables otherwise;
  std::vector<HfDemand> demands;
  /// What no single field says. ERRORS: fields that do not go together.
  void (*adapt)(const JsonView& config, Variables& variables) = nullptr;
};

/// A model_type with layers of a kind that no architecture has.
struct HfForeign {
  std::string_view name, layers;
};

/// All of them, sorted by name.
std::vector<HfType> hf_types();
std::vector<HfForeign> hf_foreign_types();

/// Whether the config has a field, and not null; its value as a number (true is 1). ERRORS: no
/// whole number from 0 to 2^40.
bool has_hf_field(const JsonView& config, std::string_view key);
std::int64_t hf_field(const JsonView& config, std::string_view key);

}  // namespace lockstep
