#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/warnings.h"
#include "workloads/comm.h"

namespace lockstep {

/// What a log tells about the run behind one table of measurements. Whatever it does not tell stays
/// empty or 0.
struct CommSetting {
  std::string id;       ///< name of the table: the log's own, else its file
  std::string source;   ///< where it was published, in a table of tables: "github:owner/name:path"
  std::string program;  ///< "all_reduce_perf", "AICB", …
  std::string gpu_type;
  std::string nccl_version;  ///< "2.26.2"
  std::string dtype;
  std::string transport;  ///< NCCL's word for the network: "IB", "Socket", "AWS Libfabric", …
  std::int32_t ranks = 0, servers = 0;
  bool servers_by_nccl = false;    ///< as NCCL counts them: an NVLink domain of racks is one
  bool ranks_guessed = false;      ///< by a name or by figures: not listed, not told by NCCL
  std::vector<std::string> hosts;  ///< one a rank, as far as listed
  std::vector<std::string> nics;   ///< as NCCL names them, "mlx5_0:1/IB": of the host with fewest
  std::vector<std::string> rings;  ///< one a channel: "0 1 2 3"
  std::int32_t trees = 0;          ///< how many channels have one
  std::int32_t channels = 0, nvls_channels = 0, p2p_channels = 0, p2p_channels_per_peer = 0;
  double gpu_link_GBps = 0;  ///< of a GPU, the most that NCCL's graph search found
  std::optional<bool> nvls;  ///< multicast in the switches
  std::optional<bool> gdr;   ///< NICs read GPU memory
  std::int32_t net_channels = 0, gdr_channels = 0;  ///< listed ends over NICs; reading GPU memory
  std::vector<std::string> nic_errors;     ///< what NCCL warns of: "mlx5_3:1 … port error"
  std::map<std::string, std::string> env;  ///< NCCL_… and what they were set to
};

/// One measured collective. Sizes are counted as nccl-tests does: the whole tensor for all-gather
/// and reduce-scatter, what one rank sends for all-to-all.
struct CommRow {
  std::int32_t setting = 0;  ///< index into PhysicalLog::settings
  CommType op = CommType::kNone;
  std::int32_t name = 0;  ///< index into PhysicalLog::names: the log's word for the operation
  std::int32_t ranks = 0;
  std::int32_t group = -1;  ///< index into PhysicalLog::groups ("tp_group"); -1: none
  Bytes bytes;
  double time_s = 0;
  double algbw_Bps = 0, busbw_Bps = 0;  ///< as printed; 0: not
  double wrong = 0;                     ///< elements that came out wrong
  bool in_place = false;
  bool waits = false;        ///< the time is one rank's, waiting for others included
  std::int64_t line = 0;     ///< in the file; 0: not a text of lines
  std::int64_t op_row = -1;  ///< index into PhysicalLog::ops of the same; -1: none
};

enum class OpKind : std::uint8_t {
  kCompute,
  kCommunication,
  kCopy,
  kHost,   ///< of the host's threads: no part of what the GPU's time goes to
  kWait,   ///< waiting that the log names as such (Horovod's negotiation, BytePS's coordination)
  kWhole,  ///< a span around other operations of the log, which are what its time went to
};

/// What a rank did on one of its streams at a time.
struct OpRow {
  std::int32_t rank = 0, stream = 0;
  OpKind kind = OpKind::kCompute;
  CommType op = CommType::kNone;       ///< of communication, where the name tells
  std::int32_t name = 0;               ///< index into PhysicalLog::names
  std::int32_t group = -1;             ///< index into PhysicalLog::groups
  std::int32_t group_size = 0;         ///< 0: unknown
  std::int64_t occurrence = -1;        ///< ops of a log with the same one are one collective or
                                       ///< message; -1: the log does not tell
  std::int64_t step = -1;              ///< that it belongs to; -1: the log does not tell
  std::int64_t bytes = -1;             ///< of communication; -1: unknown
  double begin_s = 0, duration_s = 0;  ///< since the log's own zero
  double waited_s = -1;                ///< of duration_s, for peers; -1: the log does not tell
};

/// A training step that took so long.
struct StepRow {
  std::int64_t step = 0;
  std::int32_t run = 0;  ///< index into PhysicalLog::groups, or -1
  double time_s = 0;
};

/// A part of a step, by the program's own timers: what the slowest rank took.
struct StepPart {
  std::int64_t step = 0;
  std::int32_t run = 0;   ///< as StepRow's
  std::int32_t name = 0;  ///< index into PhysicalLog::names
  double time_s = 0;
};

/// What a log of a real run holds: plain rows, and what its reader passed over.
struct PhysicalLog {
  std::string file, format;  ///< format: the reader's name
  std::vector<CommSetting> settings;
  std::vector<CommRow> comms;
  std::vector<OpRow> ops;
  std::vector<StepRow> steps;
  std::vector<StepPart> parts;
  std::vector<std::string> names, groups;
  /// Ranks of groups[i], where the log tells (else empty); shorter where it never does.
  std::vector<std::vector<std::int32_t>> members;
  std::map<std::string, std::string> facts;  ///< "world_size", "gpu", … where a log tells them
  Warnings warnings;
};

/// The ranks of groups[group]; empty: not told.
const std::vector<std::int32_t>& members_of(const PhysicalLog& log, std::int32_t group);

/// Calls of a communication on the host (indices into log.ops) are no communication where the log
/// holds the kernels that they start.
void keep_kernels_of_calls(PhysicalLog& log, const std::vector<std::size_t>& calls);

/// Index of a text in a table of texts, which gets it if it is new. Keeps its own map: O(log n).
class TextTable {
 public:
  explicit TextTable(std::vector<std::string>& texts) : texts_(texts) {}
  std::int32_t index(std::string_view text);

 private:
  std::vector<std::string>& texts_;
  std::map<std::string, std::int32_t, std::less<>> known_;
};

/// The collective that a log means by "AllReduce", "all_reduce_perf", "ncclKernel_AllReduce_RING…",
/// "nccl:all_to_all" …; kNone if it is none that is known here.
CommType comm_type_in(std::string_view name);

/// Whether a kernel of this name copies or fills memory: "Memcpy DtoD (Device -> Device)", "Memset
/// …".
bool is_copy_kernel(std::string_view name);

/// "gather", "scatter" or "hypercube", programs of nccl-tests that are no collective of NCCL's,
/// where a name has such a word; empty: it has none, or is a collective's.
std::string_view pattern_in(std::string_view name);

}  // namespace lockstep
