#pragma once

#include <cstdint>
#include <string>

#include "generator/compute_profile.h"
#include "generator/megatron_model.h"
#include "generator/training_flags.h"

namespace lockstep {

/// Lines of SimAI's text and how many they are.
struct SimaiBlock {
  std::string text;
  std::int64_t lines = 0;
};

/// The layer lines of AICB's SimAI training workload (specification sections 2.3 and 2.4). They
/// come in four dialects: with or without compute times, with or without sequence parallelism.
///
/// Sizes are the same in every microbatch; the one thing that changes is the weight-gradient time
/// of the embedding: AICB prints there the last backward time it saw, so that of the layer before.
class SimaiLayers {
 public:
  /// `profile` is null without compute times. Both arguments must outlive the object.
  /// ERRORS: jobs AICB cannot express; overflowing sizes.
  SimaiLayers(const MegatronModel& model, const TrainingArgs& args, const ComputeProfile* profile);

  SimaiBlock embedding(bool first_microbatch) const;
  SimaiBlock layer(const LayerShape& shape) const;
  /// What follows the layers of a microbatch: the head, and without times the embedding's norm.
  SimaiBlock after_layers() const;

 private:
  void add(SimaiBlock& block, struct SimaiRow line) const;
  void add_linear(SimaiBlock& block, const Linear& linear) const;
  void add_moe(SimaiBlock& block) const;
  void add_whole(SimaiBlock& block, std::string_view name) const;
  Count last_backward_time() const;

  const MegatronModel& model_;
  const TrainingArgs& args_;
  const ComputeProfile* profile_;
  Count activation_;
};

}  // namespace lockstep
