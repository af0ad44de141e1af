#pragma once

#include "base/rng.h"
#include "workloads/workload.h"

namespace lockstep::testing {

/// A valid job of layers that SimAI's text can express.
WorkloadJob random_layer_job(Rng& rng);

/// A valid job given rank by rank: collectives over two families, sends and receives, random
/// dependencies and streams.
WorkloadJob random_op_job(Rng& rng);

}  // namespace lockstep::testing
