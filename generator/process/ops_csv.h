#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "generator/block_writer.h"
#include "workloads/workload.h"

namespace lockstep {

/// Writes the communication of one rank of the first stage as AICB's general-purpose CSV
/// (docs/formats/aicb-files.md): the first `init_ops` operations as the part before the first
/// epoch_end, the others as one epoch. Rows stand in program order; the stage column is the
/// operation's name with a dot for its first blank ("forward.0 layer 3 mlp.out reduce").
/// Computation has no rows, as AICB writes none without --computation_enable; what overlaps what
/// is lost, since the format cannot tell it.
///
/// PRECONDITION: the job's work is an OpTable. O(operations).
/// Operations over groups that AICB has no word for (context parallelism, model groups) are left
/// out: the result says how many of each family.
std::map<std::string, std::int64_t> write_ops_csv(const WorkloadJob& job, std::size_t init_ops,
                                                  BlockWriter& out);

}  // namespace lockstep
