#pragma once

#include <string>
#include <string_view>

#include "generator/model/expression.h"
#include "generator/model/model.h"

namespace lockstep {

/// What a model file may hold.
struct ModelFileLimits {
  std::int64_t smallest = 1;                     ///< of a size
  std::int64_t largest = std::int64_t{1} << 40;  ///< at most 2^53
  std::int64_t layers = 100'000;                 ///< of a block, and turns of a repetition
  std::int64_t modules = 10'000;                 ///< after repetition
  bool no_layers = false;                        ///< a model may have none
};

/// A model file, YAML or JSON (docs/formats/model.md), with its expressions worked out.
/// `given` replaces the values of the file's variables; what follows from them follows.
///
/// Complexity: linear in the text and in the modules (at most 10,000, after repetition).
/// ERRORS: Error naming file, line and field: no YAML, a key that is unknown or stands twice, a
/// missing key, a wrong kind or expression, a size out of the limits, a given variable that the
/// file does not have, key and value heads that do not divide the heads, a text above 1 MiB.
Model parse_model(std::string_view text, const std::string& file, const Variables& given = {},
                  const ModelFileLimits& limits = {});
Model read_model(const std::string& path, const Variables& given = {});

}  // namespace lockstep
