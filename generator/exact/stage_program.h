#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "generator/exact/families.h"
#include "generator/exact/reduction.h"
#include "generator/exact/schedule.h"
#include "generator/exact/stage_plan.h"
#include "workloads/workload.h"

namespace lockstep {

/// How the layers of a stage fall into pieces that other ranks hold together, where not all copies
/// of the model are cut alike (mixed_job.h).
struct StagePieces {
  struct Chunk {
    std::vector<std::size_t> cuts;  ///< units that begin a new piece
    /// Of each piece: the ranks with the same dense parameters and with the same experts; with
    /// hybrid sharding those that hold the same part of the dense ones.
    std::vector<std::int32_t> dense, expert, replica;
  };
  std::vector<Chunk> chunks;
  std::int32_t shard = -1;  ///< hybrid sharding: those that cut dense parameters among each other
};

/// Writes the program of one pipeline stage (see exact_workload.h).
class StageProgram {
 public:
  /// `plan`, `families`, `time` and `pieces` must outlive it. PRECONDITION: check_job(job); with
  /// `pieces` the rules of check_mixed().
  StageProgram(const Job& job, const StagePlan& plan, const OperatorTime& time, Families& families,
               std::int64_t stage, const StagePieces* pieces = nullptr);

  /// The whole program but its ranks.
  OpProgram build(std::vector<PipelineSlot> slots);

 private:
  using Ops = std::vector<std::int32_t>;

  std::int32_t add(Op op);
  std::int32_t compute(OpType type, const Operator& op, Ops after);
  std::int32_t collective(OpType type, std::string name, std::int32_t stream, CommType comm,
                          std::int32_t family, Bytes bytes, Ops after);
  std::int32_t message(const PipelineSlot& slot, bool send, Bytes bytes, Ops after);
  bool flipped(const PipelineSlot& slot) const { return bidirectional_ && slot.chunk == 1; }

  /// What a slot is of its chunk's.
  struct SlotPlace {
    bool first = false;  ///< forward pass
    bool last = false;   ///< pass of its direction, or of its part of the last backward pass
  };
  std::vector<SlotPlace> places_of(const std::vector<PipelineSlot>& slots) const;
  void run(const PipelineSlot& slot, const SlotPlace& place);
  void share_largest(const std::vector<PlacedUnit>& units, bool backward);
  void run_beside(const PipelineSlot& slot, const SlotPlace& place, const Ops& entry,
                  std::size_t begin);
  Ops run_pass(const ModelUnit& what, const PipelineSlot& slot, const std::string& prefix,
               const Ops& entry, ChunkReduction* reduction, std::size_t unit);
  void reduce_complete(const ChunkReduction& reduction, std::size_t item, std::int32_t op);
  void reduce(const GradientBucket& bucket, bool expert, Ops after);
  const StagePieces::Chunk& pieces_of_chunk() const;
  std::size_t piece_of(std::size_t unit) const;
  std::int32_t copies_of(std::size_t piece, bool expert);
  std::int32_t shard_of(std::size_t unit, bool expert);
  Ops gather(const std::string& what, std::size_t unit, const Ops& after);
  void gather_buckets(const Ops& after);
  void gather_piece(const ChunkReduction& reduction, std::size_t piece, const Ops& after);
  void reduce_unit(std::size_t unit, bool last, const Ops& after);
  bool has_experts() const;
  void finish();

  const Job& job_;
  const StagePlan& plan_;
  const OperatorTime& time_;
  Families& families_;
  std::int64_t stage_;
  const StagePieces* pieces_;
  bool bidirectional_;
  std::int64_t dense_ranks_, expert_ranks_;                ///< that hold the same parameters
  std::vector<std::vector<PlacedUnit>> units_;             ///< by chunk
  std::vector<std::array<ChunkReduction, 2>> reductions_;  ///< by chunk: whole passes, split ones
  std::vector<std::vector<Ops>> gathered_;     ///< by chunk and unit: what its first pass awaits
  std::size_t next_item_ = 0;                  ///< of the chunk under way
  OpType type_ = OpType::kOther;               ///< of what is added, unless it has its own
  std::int32_t microbatch_ = -1, chunk_ = -1;  ///< of what is added
  OpProgram program_;
  Ops exits_;    ///< of the pass before
  Ops reduced_;  ///< all gradient reductions
};

}  // namespace lockstep
