#pragma once

#include <vector>

#include "generator/exact/exact_workload.h"
#include "generator/process/process.h"

namespace lockstep {

/// A workload, and of each stage's program how many operations at its front are those of `init`.
struct ProcessWorkload {
  Workload workload;
  std::vector<std::size_t> init_ops;
};

/// One step of a job as `process` tells it: what its items do, in place of the built-in training
/// step of exact_workload(). The model's own passes, the groups, the stages and the order of the
/// passes (job.schedule) are those of flavour exact.
///
/// An item starts when the one before it has ended; one that overlaps holds up nothing until a
/// `wait`. A receive starts at once and what follows waits for it, a send starts after the item
/// before and nothing waits for it. Collectives of a group of one, and messages of a single stage,
/// are left out.
///
/// The result satisfies validate(). O(operations).
/// ERRORS: those of check_job(); messages without a counterpart of as many bytes, and collectives
/// that not all ranks of a group enter in the same order; Error naming file, line, field and
/// variable for an expression; a variable that stands twice; more than `max_ops` operations, or
/// four times as many items.
ProcessWorkload process_workload(const Job& job, const OperatorTime& time, const Process& process,
                                 bool with_init, std::int64_t max_ops = kMaxExactOps);

}  // namespace lockstep
