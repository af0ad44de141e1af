#pragma once

#include <string_view>

#include "generator/count.h"
#include "generator/model/model.h"

namespace lockstep {

/// Values of the variables of a layer list.
using LayerValues = std::map<std::string, Count>;

/// A layer list of AICB's frames, generator/layers/<name>.yaml, with the values a command line
/// gave. It may have no layers: then `blocks` is empty. Sizes may be 0, as AICB's may.
///
/// Complexity: one reading of the file. ERRORS: Error naming file, line and variable: a size beyond
/// 2^53. PRECONDITION: there is such a file.
Model aicb_layers(std::string_view name, const LayerValues& values);

}  // namespace lockstep
