#pragma once

#include <string>

namespace lockstep {

/// The zoo as lines of text: name, parameters, those a token passes through, layers, hidden size.
/// Complexity: one reading of every model.
std::string model_table();

}  // namespace lockstep
