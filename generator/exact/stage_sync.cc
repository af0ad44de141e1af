// The part of StageProgram that keeps the ranks' parameters the same: gradients and optimizer.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "generator/exact/optimizer_step.h"
#include "generator/exact/stage_program.h"
#include "generator/exact/stage_streams.h"

namespace lockstep {

/// Starts the reduction of the buckets that `item` completes, after `op` did.
void StageProgram::reduce_complete(const ChunkReduction& reduction, std::size_t item,
                                   std::int32_t op) {
  for (const bool expert : {false, true}) {
    for (const GradientBucket& bucket : expert ? reduction.expert : reduction.dense) {
      if (bucket.last == item) {
        reduce(bucket, expert, {op});
      }
    }
  }
}

const StagePieces::Chunk& StageProgram::pieces_of_chunk() const {
  return pieces_->chunks[static_cast<std::size_t>(chunk_)];
}

/// The piece of the chunk under way that a unit is in.
std::size_t StageProgram::piece_of(std::size_t unit) const {
  if (pieces_ == nullptr) {
    return 0;
  }
  const std::vector<std::size_t>& cuts = pieces_of_chunk().cuts;
  return static_cast<std::size_t>(std::ranges::upper_bound(cuts, unit) - cuts.begin());
}

/// The ranks that hold the parameters of a piece of the chunk under way.
std::int32_t StageProgram::copies_of(std::size_t piece, bool expert) {
  if (pieces_ != nullptr) {
    return (expert ? pieces_of_chunk().expert : pieces_of_chunk().dense)[piece];
  }
  return families_.of(expert ? RankGroup::kExpertDp : RankGroup::kDpCp);
}

/// The ranks that cut the dense (expert) parameters of a unit among each other.
std::int32_t StageProgram::shard_of(std::size_t unit, bool expert) {
  if (pieces_ == nullptr) {
    return families_.shard(expert);
  }
  return job_.hsdp_replicas > 1 ? pieces_->shard : copies_of(piece_of(unit), expert);
}

void StageProgram::reduce(const GradientBucket& bucket, bool expert, Ops after) {
  if ((expert ? expert_ranks_ : dense_ranks_) < 2) {
    return;
  }
  const bool scatter = job_.sharding == Sharding::kZero1 || job_.sharding == Sharding::kZero2;
  reduced_.push_back(collective(
      OpType::kReduceGradients, expert ? "reduce expert gradients" : "reduce gradients", kDpStream,
      scatter ? CommType::kReduceScatter : CommType::kAllReduce, copies_of(bucket.piece, expert),
      Bytes(bucket.parameters) * plan_.sizes().gradient, std::move(after)));
}

/// Gathers fully sharded parameters.
StageProgram::Ops StageProgram::gather(const std::string& what, std::size_t unit,
                                       const Ops& after) {
  const ParameterCount& parameters =
      units_[static_cast<std::size_t>(chunk_)][unit].unit->parameters;
  Ops gathers;
  const int width = plan_.sizes().parameter;
  if (parameters.dense > 0 && dense_ranks_ > job_.hsdp_replicas) {
    gathers.push_back(collective(OpType::kGatherParameters, fmt::format("gather {}", what),
                                 kDpStream, CommType::kAllGather, shard_of(unit, false),
                                 Bytes(parameters.dense) * width, after));
  }
  if (parameters.expert > 0 && expert_ranks_ > job_.hsdp_replicas) {
    gathers.push_back(collective(
        OpType::kGatherParameters, fmt::format("gather experts of {}", what), kDpStream,
        CommType::kAllGather, shard_of(unit, true), Bytes(parameters.expert) * width, after));
  }
  return gathers;
}

/// Gathers what a distributed optimizer has updated, in the order in which it is needed.
void StageProgram::gather_buckets(const Ops& after) {
  if (job_.sharding != Sharding::kZero1 && job_.sharding != Sharding::kZero2) {
    return;
  }
  for (std::size_t chunk = 0; chunk < reductions_.size(); ++chunk) {
    const ChunkReduction& reduction = reductions_[chunk].front();
    chunk_ = static_cast<std::int32_t>(chunk);
    // Piece by piece, for those of another pipeline may have the same pieces in other chunks.
    const std::size_t pieces = pieces_ == nullptr ? 1 : pieces_of_chunk().cuts.size() + 1;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      gather_piece(reduction, piece, after);
    }
  }
  chunk_ = -1;
}

void StageProgram::gather_piece(const ChunkReduction& reduction, std::size_t piece,
                                const Ops& after) {
  for (const bool expert : {false, true}) {
    const std::vector<GradientBucket>& buckets = expert ? reduction.expert : reduction.dense;
    if ((expert ? expert_ranks_ : dense_ranks_) < 2) {
      continue;
    }
    for (std::size_t i = buckets.size(); i-- > 0;) {
      if (buckets[i].piece != piece) {
        continue;
      }
      const std::int32_t op = collective(
          OpType::kGatherParameters, expert ? "gather expert parameters" : "gather parameters",
          kDpStream, CommType::kAllGather, copies_of(piece, expert),
          Bytes(buckets[i].parameters) * plan_.sizes().parameter, after);
      for (std::size_t item = buckets[i].first; item <= buckets[i].last; ++item) {
        Ops& awaited = gathered_[static_cast<std::size_t>(chunk_)][reduction.items[item].unit];
        if (awaited.empty() || awaited.back() != op) {
          awaited.push_back(op);
        }
      }
    }
  }
}

/// Reduces a fully sharded unit's gradients.
void StageProgram::reduce_unit(std::size_t unit, bool last, const Ops& after) {
  const PlacedUnit& placed = units_[static_cast<std::size_t>(chunk_)][unit];
  for (const bool expert : {false, true}) {
    const ParameterCount& held = placed.unit->parameters;
    const std::int64_t parameters = expert ? held.expert : held.dense;
    const std::int64_t shards = (expert ? expert_ranks_ : dense_ranks_) / job_.hsdp_replicas;
    const Bytes bytes = Bytes(parameters) * plan_.sizes().gradient;
    const char* what = expert ? "expert gradients" : "gradients";
    Ops done = after;
    if (parameters > 0 && shards > 1) {
      done = {collective(OpType::kReduceGradients,
                         fmt::format("reduce {} of {}", what, placed.name), kDpStream,
                         CommType::kReduceScatter, shard_of(unit, expert), bytes, after)};
      reduced_.push_back(done.front());
    }
    if (parameters > 0 && job_.hsdp_replicas > 1 && last) {
      reduced_.push_back(collective(OpType::kReduceGradients,
                                    fmt::format("replicate {} of {}", what, placed.name), kDpStream,
                                    CommType::kAllReduce,
                                    pieces_ == nullptr ? families_.replica(expert)
                                                       : pieces_of_chunk().replica[piece_of(unit)],
                                    Bytes((bytes.count() + shards - 1) / shards), done));
    }
  }
}

/// Whether any stage has: the others take part in the sum over them.
bool StageProgram::has_experts() const {
  for (std::int64_t stage = 0; stage < job_.pp; ++stage) {
    if (plan_.parameters(stage).expert > 0) {
      return true;
    }
  }
  return false;
}

void StageProgram::finish() {
  const RankSizes& sizes = plan_.sizes();
  const ParameterCount parameters = plan_.parameters(stage_);
  Ops tail = exits_;
  tail.insert(tail.end(), reduced_.begin(), reduced_.end());
  const auto step = [&](OpType type, std::string name, std::int32_t stream, std::int32_t family,
                        Bytes bytes) {
    tail = {collective(type, std::move(name), stream, CommType::kAllReduce, family, bytes,
                       std::move(tail))};
  };
  const bool sharded = job_.sharding != Sharding::kNone;
  const std::int64_t owned = owned_parameters(job_, parameters);
  if (bidirectional_) {
    step(OpType::kReduceGradients, "reduce copies", kGlobalStream, families_.copies(),
         Bytes(owned) * sizes.gradient);
  }
  // Where gradients are cut over data-parallel ranks each sums what it has of them.
  const std::int64_t cut = job_.sharding >= Sharding::kZero2 ? dense_shards(job_) : 1;
  if (const std::int64_t summed = plan_.summed_parameters(stage_); summed > 0) {
    step(OpType::kReplicatedGradients, "reduce replicated gradients", kTpStream,
         families_.of(RankGroup::kTp), Bytes((summed + cut - 1) / cut) * sizes.gradient);
  }
  // Of two directions the first and the last stage have both tables and have added them up above.
  if (plan_.tied_parameters() > 0 && job_.pp > 1 && !bidirectional_ &&
      (stage_ == 0 || stage_ == job_.pp - 1)) {
    step(OpType::kTiedEmbedding, "reduce tied embedding", kGlobalStream, families_.embedding(),
         Bytes((plan_.tied_parameters() + cut - 1) / cut) * sizes.gradient);
  }
  const RankGroup copy = sharded ? RankGroup::kWorld : RankGroup::kModel;
  const std::int64_t ranks = sharded ? job_.gpus : job_.tp * job_.pp;
  if (job_.precision == Precision::kFp16 && ranks > 1) {
    step(OpType::kClip, "any infinite gradient", kGlobalStream, families_.of(copy), Bytes(4));
  }
  tail = {compute(OpType::kClip, gradient_norm(owned, sizes), std::move(tail))};
  if (ranks > 1) {
    step(OpType::kClip, "sum of gradient norms", kGlobalStream, families_.of(copy), Bytes(4));
  }
  const RankLayout layout = layout_of(job_);
  if (!sharded && has_experts() && layout.ep * layout.etp * layout.pp > 1) {
    step(OpType::kClip, "sum of expert gradient norms", kGlobalStream,
         families_.of(RankGroup::kExpertModel), Bytes(4));
  }
  for (const Operator& op :
       {optimizer_update(owned, sizes), gradient_reset(job_, parameters, sizes),
        parameter_copy(owned, sizes)}) {
    if (op.bytes > 0) {
      tail = {compute(OpType::kOptimizer, op, std::move(tail))};
    }
  }
  if (!job_.overlap_parameters) {
    gather_buckets(tail);
  }
}

}  // namespace lockstep
