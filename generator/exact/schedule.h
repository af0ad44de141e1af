#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// Which gradients a backward pass works out: all; or that of its input, with which the stage
/// before can go on; or later those of the weights.
enum class BackwardPart : std::uint8_t { kWhole, kInput, kWeights };

/// A forward or backward pass of one microbatch through one chunk of a stage.
struct PipelineSlot {
  bool backward = false;
  std::int32_t chunk = 0, microbatch = 0;
  BackwardPart part = BackwardPart::kWhole;
  bool beside_next = false;  ///< runs in turns with the slot after it, operator by operator
  friend bool operator==(const PipelineSlot&, const PipelineSlot&) = default;
};

struct PipelineShape {
  std::int64_t pp = 1, vpp = 1, microbatches = 1;
};

/// In which order a stage runs its passes. Each pass of each microbatch and chunk comes once, the
/// forward before the backward, a backward one whole or its input's part before its weights'; the
/// order of all stages together has no cyclic wait.
///
/// A bidirectional schedule has two chunks a stage: chunk 0 holds the layers of that stage, chunk 1
/// those of the stage as far from the other end, so all parameters are there twice. Half of the
/// microbatches, numbered from 0 in each, go through the chunks 0 forward from the first stage, the
/// others through the chunks 1 from the last.
struct PipelineSchedule {
  std::string_view name, summary;
  /// PRECONDITION: check_shape(); 0 <= stage < pp; where vpp > 1, pp > 1 and pp divides the
  /// microbatches. O(microbatches vpp).
  std::vector<PipelineSlot> (*order)(const PipelineShape& shape, std::int64_t stage);
  bool one_chunk = false;        ///< knows no interleaving: vpp is 1
  bool splits_backward = false;  ///< some backward passes come in two parts
  bool bidirectional = false;
  bool side_by_side = false;  ///< some passes run beside the next (PipelineSlot::beside_next)

  std::int64_t chunks(const PipelineShape& shape) const { return bidirectional ? 2 : shape.vpp; }
};

/// What a schedule itself asks of a shape. ERRORS: Error with field --pp, --vpp or --global_batch:
/// vpp > 1 where it knows no interleaving; bidirectional ones need an even pp and an even number of
/// at least 2 pp microbatches.
void check_shape(const PipelineSchedule& schedule, const PipelineShape& shape);

/// Sorted by file name.
std::span<const PipelineSchedule* const> pipeline_schedules();

/// ERRORS: Error with field schedule for an unknown name.
const PipelineSchedule& pipeline_schedule_named(std::string_view name);

/// What one microbatch keeps in a model chunk.
struct KeptByChunk {
  Bytes kept;   ///< from its forward pass to the end of its backward pass, or of the weights' part
  Bytes again;  ///< from the input's part of a split backward pass to the end of the weights' part
};

/// The most that a stage keeps at a time.
Bytes peak_kept(std::span<const PipelineSlot> slots, std::span<const KeptByChunk> by_chunk);

/// peak_kept() of a stage's order. O(pp vpp), however many microbatches: after some rounds each
/// further microbatch adds the same to the peak, everything (gpipe) or nothing (the others).
/// PRECONDITION: that of PipelineSchedule::order.
Bytes peak_kept(const PipelineSchedule& schedule, const PipelineShape& shape, std::int64_t stage,
                std::span<const KeptByChunk> by_chunk);

}  // namespace lockstep
