#pragma once

#include <cstdint>

#include "base/json.h"
#include "generator/model/model.h"

namespace lockstep {

/// Holds a config's `layer_types`, by which Transformers gives each layer its attention, against
/// the model that was made of the config's other fields: a layer with a window must be listed as
/// sliding or chunked, one without as full. A window of max_position_embeddings or more is the same
/// as none. `layers` are the config's; of a model with another number those that both have are
/// compared. Nothing where the list is absent or null.
///
/// ERRORS: Error naming file and layer_types[i]: no list of texts, another number than `layers`, a
/// type that differs or that is not known.
void check_hf_layer_types(const JsonView& config, std::int64_t layers, const Model& model);

}  // namespace lockstep
