#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/launch_line.h"
#include "trace/log_reader.h"
#include "trace/nccl_table_op.h"

namespace lockstep {

/// What a log of nccl-tests says of one table beside its rows.
struct NcclTable {
  LaunchLine launch;
  std::int32_t process_gpus = 0;     ///< 0: not told
  std::vector<std::int64_t> groups;  ///< of each rank that is told
  NcclTableRow fastest;              ///< the row that says most of its operation and ranks
  bool program_told = false;         ///< by itself, not guessed from a command before it
};

/// Tells a table's setting its ranks and servers, and its rows their operation: by NCCL's own log,
/// names of tables and files, the launcher's line, the ratio of bandwidths, in this order. O(rows).
void name_ranks(CommSetting& setting, const NcclTable& table, std::span<CommRow> rows,
                TextTable& names, PhysicalLog& log);

/// Times that do not agree with the bandwidths beside them are of another unit, if by a factor of a
/// thousand and the header told none, or wrong. O(rows).
void check_times(const CommSetting& setting, const NcclTableRow& row, std::span<CommRow> rows,
                 Warnings& warnings);

}  // namespace lockstep
