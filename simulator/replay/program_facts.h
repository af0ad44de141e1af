#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "simulator/replay/program.h"
#include "workloads/comm.h"

namespace lockstep {

/// Families of communications that come early in the programs, and those that come late: the phases
/// in which a step is folded (step_fold.h says why).
struct StepPhases {
  explicit StepPhases(const RankPrograms& work);

  std::int32_t of(std::int32_t family) const {
    return of_family[family < 0 ? of_family.size() - 1 : static_cast<std::size_t>(family)];
  }

  std::vector<std::int32_t> of_family;  ///< the last entry is that of pairs of no family
  std::int32_t count = 1;
};

/// Whether launching its computations takes the host time. O(operations).
bool launches(const Program& program);

/// What folding reads off a step's programs. It does not hang on how long computations take.
/// O(operations log(kinds)) to make, 4 B an operation.
struct ProgramFacts {
  /// What communications of one sort have in common: family, what, bytes. For pairs whether it is
  /// sent and the peer matter.
  using Kind = std::tuple<std::int32_t, CommType, Bytes, bool, std::int32_t>;

  explicit ProgramFacts(const RankPrograms& work);

  StepPhases phases;
  std::vector<std::vector<Kind>> kinds;  ///< per program, as they appear
  /// Per program and operation: the kind of its communication; -1 of computations.
  std::vector<std::vector<std::int32_t>> kind_of_op;
  std::vector<char> hosts;  ///< per program: launching computations takes time
};

}  // namespace lockstep
