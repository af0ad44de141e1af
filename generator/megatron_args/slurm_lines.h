#pragma once

#include <string_view>

#include "generator/megatron_args/shell_variables.h"

namespace lockstep {

/// Sets what Slurm would set for a script's "#SBATCH" lines, unless it is set already:
/// SLURM_NNODES, SLURM_JOB_NUM_NODES, SLURM_NTASKS_PER_NODE, SLURM_NTASKS, SLURM_GPUS_PER_NODE,
/// SLURM_GPUS_ON_NODE (sbatch(1), "output environment variables"), and, to values that are not
/// known, SLURM_JOB_ID and others that every job has. As sbatch has it, lines behind the first
/// command are none of its, and the last of several values counts. Lines with other options, or
/// with values that are no numbers, are passed over. O(text).
void set_slurm_variables(std::string_view text, ShellVariables& variables);

}  // namespace lockstep
