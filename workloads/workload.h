#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "workloads/comm.h"
#include "workloads/op_type.h"

namespace lockstep {

/// More GPUs than any job may have; keeps what is allocated per GPU within bounds.
inline constexpr std::int64_t kMaxGpus = std::int64_t{1} << 24;

/// How a job is cut over its GPUs. Degrees are at least 1, but AICB may write 0 for vpp and ga (a
/// batch or a model too small for the cut).
struct Parallelism {
  std::int64_t gpus = 1;  ///< world size; 0 where the file does not say
  std::int64_t tp = 1, ep = 1, pp = 1;
  std::int64_t vpp = 1;  ///< model chunks per stage; AICB writes its layers per stage here
  std::int64_t ga = 1;   ///< microbatches per step (gradient accumulation)
  std::int64_t cp = 1;   ///< context-parallel ranks; SimAI's text has no word for them
  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

/// One of a layer's three phases: compute, then a communication. Without a communication (kNone)
/// `group` is kTp (weight_grad: kDp) and `bytes` may be anything: AICB leaves sizes there.
struct LayerPhase {
  Time compute;
  Bytes bytes;  ///< the full tensor: all-gather output, reduce-scatter input, all-to-all buffer
  CommType comm = CommType::kNone;
  GroupKind group = GroupKind::kTp;
  friend bool operator==(const LayerPhase&, const LayerPhase&) = default;
};

/// One line of SimAI's workload text.
struct Layer {
  std::int32_t name = 0;  ///< index into LayerTable::names
  std::int32_t dependency = -1;
  LayerPhase forward, input_grad, weight_grad;
  Time update;  ///< added after each collective of the layer
  friend bool operator==(const Layer&, const Layer&) = default;
};

/// A key of the first line of SimAI's text.
enum class SimaiKey : std::uint8_t {
  kTp,  ///< model_parallel_NPU_group:
  kEp,
  kPp,
  kVpp,
  kGa,
  kAllGpus,
  kMode,
  kCheckpoints,
  kCheckpointInitiates,
  kPpComm,
  kPpCommNoColon,  ///< "pp_comm 50331648", as in SimAI's own example
  kOther,          ///< any other word
};

/// How the first line of SimAI's text was written, so that it can be written back the same. The
/// default is what AICB writes for training.
struct SimaiHeader {
  struct Field {
    SimaiKey key = SimaiKey::kOther;
    std::string text;  ///< kOther: the word as it stands
    friend bool operator==(const Field&, const Field&) = default;
  };
  std::vector<Field> fields;   ///< in the file's order; empty: the usual ones of the policy
  bool pp_comm_float = false;  ///< a whole pp_comm is written "4194304.0", as Python's floats are
  friend bool operator==(const SimaiHeader&, const SimaiHeader&) = default;
};

/// A job as SimAI describes it: layers that all ranks walk through, forward and then backward.
struct LayerTable {
  std::string policy = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";  ///< one of simai_policies()
  double pp_comm_bytes = 0;  ///< sent to the next stage per microbatch; AICB may write a fraction
  std::int64_t mode = 0;     ///< 1: inference (AICB)
  std::vector<std::int32_t> checkpoints;           ///< layers whose input is kept
  std::vector<std::int32_t> checkpoint_initiates;  ///< layers that start a recomputation
  std::vector<std::string> names;                  ///< each name once, in order of first use
  std::vector<Layer> layers;
  std::vector<std::string> layer_policies;  ///< HYBRID_CUSTOMIZED only: one a layer; else empty
  SimaiHeader header;
  friend bool operator==(const LayerTable&, const LayerTable&) = default;
};

/// Ranks first, first + stride, … below end.
struct RankRange {
  std::int32_t first = 0, end = 0, stride = 1;
  friend bool operator==(const RankRange&, const RankRange&) = default;
};

/// One operation of a rank: compute for `compute`, or communicate `bytes` over the rank's group
/// of family `group`, or send to (receive from) another rank; after the operations `after` of the
/// same program have ended. The other rank is `peer`; or, where `group` is given, the one `peer`
/// places on in the rank's group of that family, round its end: 1 is the next, -1 the one before.
/// So each of the ranks that share a program has its own peer. Messages from one rank to another
/// are matched in program order, those within each family for themselves. Operations on one stream
/// run one at a time, in program order. Where computations have `host` times, the rank's host
/// launches them one after the other in program order, ahead of the GPU, and waits for messages of
/// type forward-recv and backward-recv: a computation begins no sooner than the host turns to it
/// and ends no sooner than it is launched. What does not belong to its kind is left at its default.
struct Op {
  std::string name;
  std::int32_t stream = 0;  ///< index into OpProgram::streams
  Time compute;
  CommType comm = CommType::kNone;
  std::int32_t group = -1;  ///< index into OpTable::groups; -1: compute, or `peer` is a rank
  std::int32_t peer = -1;   ///< send/receive: the other rank, or places to it in the group
  bool send = false;        ///< send/receive: true on the sender
  Bytes bytes;
  std::vector<std::int32_t> after;  ///< indices of earlier operations of the program
  Time host;                        ///< computation: of the host, to launch it
  OpType type = OpType::kOther;     ///< this and what follows only describe it, for traces
  std::int32_t microbatch = -1;     ///< -1: of none
  std::int32_t chunk = -1;          ///< of the stage's model chunks; -1: of none
  friend bool operator==(const Op&, const Op&) = default;
};

/// What each of some ranks does in a step.
struct OpProgram {
  std::vector<RankRange> ranks;
  std::vector<std::string> streams;
  std::vector<Op> ops;
  friend bool operator==(const OpProgram&, const OpProgram&) = default;
};

/// A family of communicators of one kind that do not overlap: {"tp", {{0,1},{2,3}}}.
struct GroupFamily {
  std::string name;
  std::vector<std::vector<std::int32_t>> members;
  friend bool operator==(const GroupFamily&, const GroupFamily&) = default;
};

/// Work given rank by rank; ranks that do the same share a program, ranks in none do nothing.
struct OpTable {
  std::vector<GroupFamily> groups;
  std::vector<OpProgram> programs;
  friend bool operator==(const OpTable&, const OpTable&) = default;
};

struct WorkloadJob {
  std::string name = "job";
  Parallelism parallel;
  std::variant<LayerTable, OpTable> work;
  friend bool operator==(const WorkloadJob&, const WorkloadJob&) = default;
};

/// The work of one training step, for one job or for several that share the cluster.
struct Workload {
  std::vector<WorkloadJob> jobs;
  friend bool operator==(const Workload&, const Workload&) = default;
};

}  // namespace lockstep
