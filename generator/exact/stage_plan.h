#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/exact/folded_pass.h"
#include "generator/exact/schedule.h"
#include "generator/exact/stages.h"
#include "generator/job.h"

namespace lockstep {

/// A layer, or what is before the first or after the last, with its priced passes.
struct ModelUnit {
  FoldedPass forward, backward;
  FoldedPass input_backward, weight_backward;  ///< the two parts of `backward`
  const FoldedPass& pass(const PipelineSlot& slot) const;
  ParameterCount parameters;
  /// Of those, the ones whose gradients each tensor-parallel rank has a part of: with sequence
  /// parallelism all that they hold whole, else norms of heads, which are cut (Megatron Core,
  /// finalize_model_grads.py).
  std::int64_t summed_parameters = 0;
  std::int64_t residual_width = 0;  ///< features of a token it hands on
  std::int64_t products = 0;        ///< weights on a rank whose products take fp8 operands
};

/// A unit at its place in the model.
struct PlacedUnit {
  std::string name;  ///< "layer 12", "embedding", "head"
  const ModelUnit* unit = nullptr;
};

/// The model of a job cut into stages, each kind of unit worked out and priced once.
class StagePlan {
 public:
  /// PRECONDITION: check_job(job).
  StagePlan(const Job& job, const OperatorTime& time);

  const RankSizes& sizes() const { return sizes_; }
  std::int64_t chunks() const { return std::ssize(chunks_.front()); }
  /// The units of a chunk in forward order.
  std::vector<PlacedUnit> units(std::int64_t stage, std::int64_t chunk) const;
  ParameterCount parameters(std::int64_t stage) const;
  std::int64_t summed_parameters(std::int64_t stage) const;
  /// What a chunk sends on to the next virtual stage for a microbatch: a rank's rows of the
  /// residual stream (Megatron Core, p2p_communication.py), in bf16 also with fp8.
  Bytes output_bytes(std::int64_t stage, std::int64_t chunk) const;
  /// The table that a tied head shares with the embedding, one rank's rows; 0: not tied.
  std::int64_t tied_parameters() const { return tied_parameters_; }

 private:
  RankSizes sizes_;
  std::vector<std::vector<ModelChunk>> chunks_;
  ModelUnit before_, after_;
  std::vector<ModelUnit> blocks_;
  std::vector<std::int64_t> block_end_;  ///< first layer after each block
  bool has_before_ = false, has_after_ = false;
  std::int64_t tied_parameters_ = 0;
};

/// Layers of a model, all blocks together.
std::int64_t layer_count(const Model& model);

/// Of a checked job; with a bidirectional schedule the second chunk is that of the stage as far
/// from the other end.
std::vector<std::vector<ModelChunk>> stages_of(const Job& job);

/// Whether a stage's chunk begins the model: one does, with a bidirectional schedule one at each
/// end.
bool is_first_chunk(const Job& job, std::int64_t stage, std::int64_t chunk);

}  // namespace lockstep
