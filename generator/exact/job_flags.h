#pragma once

#include "generator/argparse.h"
#include "generator/job.h"

namespace lockstep {

/// The flags that describe a Job but for its model: how many GPUs, how it is cut, batch, precision
/// and so on; Megatron-LM's and AICB's spellings are aliases. Shared by all commands that take a
/// job.
std::span<const ArgSpec> job_flags();

/// The job the flags describe, without its model. Where global_batch is not given it is one
/// microbatch for each data-parallel rank and stage.
///
/// ERRORS: Error naming the flag: a number that is none, or out of range; a cut that does not fit
/// the GPUs (check_layout()). What depends on the model is check_job()'s part.
Job job_from_flags(const ArgValues& args);

}  // namespace lockstep
