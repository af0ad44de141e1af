#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// A forward or backward pass of one microbatch through one chunk of a stage.
struct PipelineSlot {
  bool backward = false;
  std::int32_t chunk = 0, microbatch = 0;
  friend bool operator==(const PipelineSlot&, const PipelineSlot&) = default;
};

struct PipelineShape {
  std::int64_t pp = 1, vpp = 1, microbatches = 1;
};

/// In which order a stage runs its passes. Each pass of each microbatch and chunk comes once, the
/// forward before the backward; the order of all stages together has no cyclic wait.
struct PipelineSchedule {
  std::string_view name, summary;
  /// PRECONDITION: microbatches divide by pp where vpp > 1; 0 <= stage < pp. O(microbatches vpp).
  std::vector<PipelineSlot> (*order)(const PipelineShape& shape, std::int64_t stage);
};

/// Sorted by file name.
std::span<const PipelineSchedule* const> pipeline_schedules();

/// ERRORS: Error with field schedule for an unknown name.
const PipelineSchedule& pipeline_schedule_named(std::string_view name);

/// The most that a stage keeps at a time when each forward pass of chunk c adds by_chunk[c] and its
/// backward pass takes it away again.
Bytes peak_kept(std::span<const PipelineSlot> slots, std::span<const Bytes> by_chunk);

}  // namespace lockstep
