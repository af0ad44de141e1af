#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "simulator/replay/step_programs.h"

namespace lockstep {

/// What the operations of a step are called in messages and pictures. O(ranges of the rank's
/// programs) a name.
class OpNames {
 public:
  /// PRECONDITION: `compiled`, and the workload that it was compiled from, outlive the object.
  explicit OpNames(const StepPrograms& compiled);

  std::string operator()(std::int32_t rank, std::int32_t op) const;
  /// The line that it is drawn on: its stream, or for layers what it communicates over.
  std::string track(std::int32_t rank, std::int32_t op) const;

 private:
  /// The number of a rank's job, and its program where the job is an op table, else nullptr.
  std::pair<std::size_t, const OpProgram*> of(std::int32_t rank) const;

  const StepPrograms& compiled_;
  std::vector<std::vector<std::string>> names_;  // by job; empty for op tables
};

}  // namespace lockstep
