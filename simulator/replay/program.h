#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "workloads/comm.h"
#include "workloads/op_type.h"

namespace lockstep {

/// In which order a rank's stream starts the operations that are ready.
enum class StreamOrder : std::uint8_t {
  kProgram,      ///< as the program lists them, like a CUDA stream
  kNewestFirst,  ///< the one that became ready last (SimAI's queue of collectives)
};

/// One operation of a rank. Compute: `lead`, then `compute`. Communication (comm != kNone): the
/// rank enters the collective, takes part until its share is done, then `compute` more (SimAI's
/// update time) before successors may start; a newest-first stream goes on without it.
struct ProgramOp {
  Time lead;  ///< idle time before it, not counted as compute
  Time compute;
  Time host;  ///< of the host, to launch a computation (workloads/workload.h)
  Bytes bytes;
  CommType comm = CommType::kNone;
  std::int32_t stream = 0;
  std::int32_t family = -1;  ///< index into RankPrograms::families; -1: compute, `peer` is a rank
  /// Send/receive: the other rank, or with a family how many places on it is in the rank's group:
  /// 1 … size - 1, the same size for all groups.
  std::int32_t peer = -1;
  bool send = false;
  /// All-to-all: brings back what an earlier one took out, as experts' results.
  bool returns = false;
  std::int32_t sequence =
      -1;  ///< how many earlier operations use the same communicator; set by add()
  OpType type = OpType::kOther;  ///< this and what follows describe it for traces
  std::int16_t chunk = -1;       ///< of the stage's model chunks; -1: of none
  std::int32_t microbatch = -1;  ///< -1: of none

  /// Whether its data may move once this rank has entered: not so a receive.
  bool sets_off() const { return comm != CommType::kSendRecv || send; }
};

/// What a rank does in one step: operations in issue order, each after some earlier ones. Several
/// ranks may share a program. Flat arrays; memory O(operations + dependencies).
class Program {
 public:
  explicit Program(std::vector<StreamOrder> streams);

  /// Appends an operation and returns its index. PRECONDITION: `after` holds earlier indices.
  std::int32_t add(ProgramOp op, std::span<const std::int32_t> after);
  /// Builds what the replay reads; call once, after the last add().
  void finish();
  /// Renumbers what the operations refer to: families and peers move up by these amounts.
  void shift(std::int32_t families, std::int32_t ranks);
  /// Another time for a computation.
  void set_compute(std::int32_t op, Time compute) {
    ops_[static_cast<std::size_t>(op)].compute = compute;
  }

  std::span<const ProgramOp> ops() const { return ops_; }
  std::span<const StreamOrder> streams() const { return streams_; }
  std::span<const std::int32_t> dependency_counts() const { return dependency_counts_; }
  std::span<const std::int32_t> successors(std::int32_t op) const {
    return std::span(successors_)
        .subspan(successor_begin_[static_cast<std::size_t>(op)],
                 successor_begin_[static_cast<std::size_t>(op) + 1] -
                     successor_begin_[static_cast<std::size_t>(op)]);
  }
  /// The operations of one stream in program order.
  std::span<const std::int32_t> stream_ops(std::int32_t stream) const {
    return stream_ops_[static_cast<std::size_t>(stream)];
  }

 private:
  std::vector<ProgramOp> ops_;
  std::vector<StreamOrder> streams_;
  std::vector<std::int32_t> dependency_counts_;
  std::vector<std::int32_t> predecessors_;  // as added, until finish()
  std::vector<std::size_t> successor_begin_;
  std::vector<std::int32_t> successors_;
  std::vector<std::vector<std::int32_t>> stream_ops_;
};

/// Communicators of one kind: disjoint groups of ranks.
class CommFamily {
 public:
  /// `plain`: these are the groups that the kind is named for ("tp"), not further ones that count
  /// as such ("tp.model").
  CommFamily(GroupKind kind, std::vector<std::vector<std::int32_t>> members, std::int32_t ranks,
             bool plain = true);

  GroupKind kind() const { return kind_; }
  bool plain() const { return plain_; }
  std::span<const std::vector<std::int32_t>> groups() const { return members_; }
  /// The group of a rank and the rank's place in it; -1 where it is in none.
  std::int32_t group_of(std::int32_t rank) const { return group_[static_cast<std::size_t>(rank)]; }
  std::int32_t place_of(std::int32_t rank) const { return place_[static_cast<std::size_t>(rank)]; }

 private:
  GroupKind kind_;
  bool plain_;
  std::vector<std::vector<std::int32_t>> members_;
  std::vector<std::int32_t> group_, place_;
};

/// The work of all ranks of one step.
struct RankPrograms {
  std::vector<Program> programs;
  std::vector<std::int32_t> program_of_rank;
  std::vector<CommFamily> families;

  std::int32_t ranks() const { return static_cast<std::int32_t>(program_of_rank.size()); }
  const Program& program(std::int32_t rank) const {
    return programs[static_cast<std::size_t>(program_of_rank[static_cast<std::size_t>(rank)])];
  }
};

}  // namespace lockstep
