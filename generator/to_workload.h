#pragma once

#include "generator/generator.h"
#include "workloads/workload.h"

namespace lockstep {

/// A workload in SimAI's text as the values the rest of Lockstep works on, whole in memory.
/// PRECONDITION: the generator's format is "simai".
/// ERRORS: Error when it says what SimAI has no meaning for (a micro test of an unknown operation).
Workload to_workload(const GeneratedWorkload& generated);

}  // namespace lockstep
