#pragma once

#include <string>

#include "workloads/workload.h"

namespace lockstep::testing {

inline LayerPhase phase(Time compute, CommType comm = CommType::kNone, std::int64_t bytes = 0,
                        GroupKind group = GroupKind::kTp) {
  return {compute, Bytes(bytes), comm, group};
}

/// Appends a layer of that name.
inline void add_layer(LayerTable& table, const std::string& name, const LayerPhase& forward,
                      const LayerPhase& input_grad, const LayerPhase& weight_grad) {
  Layer layer;
  for (; layer.name < static_cast<std::int32_t>(table.names.size()) &&
         table.names[static_cast<std::size_t>(layer.name)] != name;
       ++layer.name) {
  }
  if (layer.name == static_cast<std::int32_t>(table.names.size())) {
    table.names.push_back(name);
  }
  layer.forward = forward;
  layer.input_grad = input_grad;
  layer.weight_grad = weight_grad;
  table.layers.push_back(layer);
}

}  // namespace lockstep::testing
