#pragma once

#include <string>

#include "base/json.h"

namespace lockstep {

/// The zoo as lines of text: name, parameters, those a token passes through, layers, hidden size.
/// Complexity: one reading of every model.
std::string model_table();

/// The same as lockstep-models/1 (docs/formats/generate-json.md).
Json models_json();

}  // namespace lockstep
