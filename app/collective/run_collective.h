#pragma once

#include <string>

#include "app/collective/collective_options.h"
#include "report/collective_report.h"

namespace lockstep {

/// Carries out `lockstep collective`: every size, with every engine. ERRORS: Error naming the flag.
CollectiveSweep run_collective(const CollectiveOptions& options);

}  // namespace lockstep
