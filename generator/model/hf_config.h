#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/model/expression.h"
#include "generator/model/model.h"

namespace lockstep {

/// The model of a Hugging Face config.json, by its model_type: one of the built-in architectures
/// with the config's sizes. What has no bearing on sizes is passed over; what would change the
/// architecture (a layer list of mixed kinds) is refused. `given` replaces the architecture's
/// variables, as in find_model().
///
/// ERRORS: Error naming file and field: no JSON, an unknown model_type (with the known ones), a
/// missing or wrong field, sizes that the architecture refuses, a file above 16 MiB.
Model parse_hf_config(std::string_view text, const std::string& file, const Variables& given = {});
Model read_hf_config(const std::string& path, const Variables& given = {});

/// The model_types that are known, sorted.
std::vector<std::string_view> hf_model_types();

}  // namespace lockstep
