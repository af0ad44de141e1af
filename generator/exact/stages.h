#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// A piece of the model that one stage runs at a time: consecutive layers, numbered from 0 through
/// all blocks. The embedding goes with the first layer, the head with the last.
struct ModelChunk {
  std::int64_t first = 0, layers = 0;
  bool embedding = false, head = false;
  friend bool operator==(const ModelChunk&, const ModelChunk&) = default;
};

struct StageCut {
  std::int64_t layers = 1;  ///< of the whole model
  std::int64_t pp = 1;
  std::int64_t vpp = 1;           ///< model chunks a stage
  std::int64_t first_layers = 0;  ///< layers of the whole first stage; 0: not given
  std::int64_t last_layers = 0;   ///< of the whole last stage; 0: not given
  /// Of each virtual stage, in the model's order; empty: not given, else the two above are 0.
  std::vector<std::int64_t> counts = {};
};

/// The chunks of each stage: result[stage][chunk]. Chunk c of stage s is the virtual stage
/// v = c pp + s; virtual stages follow each other through the model (Narayanan et al., SC'21,
/// section 2.2).
///
/// Layers are spread as Megatron Core does (transformer_layer.get_transformer_layer_offset):
/// evenly; or, where the counts of the first or last stage are given, as given there and evenly
/// over the other stages; within a stage evenly over its chunks. Where that leaves a remainder
/// Megatron refuses. Here, when neither count is given, the remainder goes one layer each to the
/// virtual stages before the last, from the back; the first and the last come last, as they have
/// the embedding and the head (Llama 3's cut: arXiv:2407.21783, section 3.3.2).
///
/// `counts` are taken as they are (Megatron Core, --pipeline-model-parallel-layout); the first and
/// the last may be 0, with the embedding and the head alone.
///
/// ERRORS: Error with field pp, vpp, first_stage_layers, last_stage_layers or stage_layers and the
/// nearest values that fit: values out of range, more virtual stages than layers, counts given that
/// leave the other stages a remainder, or that are not one of each virtual stage and the model's
/// layers in sum. O(pp vpp).
std::vector<std::vector<ModelChunk>> cut_into_stages(const StageCut& cut);

}  // namespace lockstep
