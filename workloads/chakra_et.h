#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"
#include "workloads/workload.h"

namespace lockstep {

/// The files of a set of Chakra execution traces: NAME.0.et, NAME.1.et, … in a folder, or those
/// that a prefix (FOLDER/NAME) begins. Empty where `path` is neither.
/// ERRORS: Error where the folder has files of several names, or a rank is missing.
std::vector<std::string> chakra_files(const std::string& path);

/// Reads a set of Chakra execution traces (protobuf, et_def.proto), one file a rank, as the work of
/// one job.
///
///  - A node becomes an operation after those that it waits for (chakra_order.h). Of nodes that are
///    ready the one with the smallest id comes first. Computation takes duration_micros, as do
///    loads from memory and stores to it, which run beside it; operations of the host (is_cpu_op,
///    its calls of communication, too) and of each CUDA stream (attribute "stream") run one after
///    the other, as do loads and stores without one, collectives of a process group and messages to
///    (from) one rank.
///  - Collectives run over the process group `pg_name`: the ranks that comm_group.json beside the
///    traces lists for it ({"NAME": [0, 1, …]}), else all ranks that name it; without one, over all
///    ranks. comm_size is what a rank puts in, so an all-gather's tensor is as many times larger.
///  - Messages name the other rank by comm_dst and comm_src.
///
/// Warns of what ordered_chakra_nodes() does, of computations without a duration, which take no
/// time, and of collectives that the host is said to do. ERRORS: Error with the file, and the node
/// where there is one: cut off, no nodes, a collective without size or of a kind that we do not
/// have, a rank that does not exist, nodes that wait for each other, and everything validate()
/// refuses.
/// O(nodes log nodes); some 500 B a node in memory.
Workload read_chakra_et(const std::vector<std::string>& files, Warnings* warnings = nullptr);

/// The operations of one rank, their groups (Op::group) not settled.
struct ChakraRank {
  OpProgram program;
  /// Per operation of a collective: the process group's name; empty: all ranks, or no collective.
  std::vector<std::string> group;
};
ChakraRank read_chakra_rank(std::string_view text, const std::string& file,
                            Warnings* warnings = nullptr);

}  // namespace lockstep
