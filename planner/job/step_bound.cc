#include "planner/job/step_bound.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "generator/exact/optimizer_step.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/reduction.h"

namespace lockstep {
namespace {

/// For what the replay rounds to picoseconds, and sums in another order.
constexpr double kSlack = 1 - 1e-9;

/// One chunk of one stage.
struct Chunk {
  std::vector<const UnitTimes*> units;
  std::vector<double> gathered;  ///< by unit: when its parameters could be there (ZeRO-1, -2)
  double forward = 0, backward = 0, input = 0, weights = 0;
  std::size_t stage = 0, index = 0;
  double output_s = 0;        ///< to send its output on, and the gradient back
  double last_reduction = 0;  ///< ZeRO-3: of the unit that comes last
  double traffic = 0;         ///< ZeRO-3: of the dp stream, a microbatch
  struct Bucket {
    std::size_t last = 0;  ///< item that completes it
    std::size_t unit = 0;  ///< of that item
    BackwardPart part = BackwardPart::kWhole;
    bool expert = false;
    std::int64_t parameters = 0;
    std::size_t piece = 0;
  };
  std::vector<Bucket> buckets;  ///< of gradients, in the order in which they are complete
  /// Of parameters: those of a backward pass that is not split, however it runs.
  std::vector<Bucket> gathers;
};

class Floor {
 public:
  Floor(const Job& job, StageCosts& costs, std::int64_t most_walked)
      : job_(job),
        costs_(costs),
        schedule_(pipeline_schedule_named(job.schedule)),
        sizes_(rank_sizes(job)),
        dense_ranks_(job.dp() * job.cp),
        expert_ranks_(layout_of(job).expert_dp()),
        microbatches_(job.microbatches()),
        walked_(microbatches_ <= most_walked) {}

  StepFloor run() {
    const std::vector<std::vector<ModelChunk>> cut = stages_of(job_);
    for (std::size_t s = 0; s < cut.size(); ++s) {
      Stage& stage = stages_.emplace_back();
      stage.index = s;
      for (const ModelChunk& chunk : cut[s]) {
        stage.chunks.push_back(make_chunk(chunk, stage));  // counts those before
      }
      if (walked_) {
        stage.slots =
            schedule_.order({job_.pp, job_.vpp, microbatches_}, static_cast<std::int64_t>(s));
      }
      gather_buckets(stage);
    }
    if (walked_) {
      run_passes();
    } else {
      sum_passes();
    }
    return finish();
  }

 private:
  struct Stage {
    std::size_t index = 0;
    std::vector<Chunk> chunks;
    std::vector<PipelineSlot> slots;
    std::size_t next = 0;
    double free = 0, dp_free = 0;
    double compute = 0;
    ParameterCount parameters;
  };

  double gather_s(const Chunk& chunk, const ParameterCount& parameters) {
    return sharded_s(chunk, CommType::kAllGather, parameters, sizes_.parameter);
  }
  double scatter_s(const Chunk& chunk, const ParameterCount& parameters) {
    return sharded_s(chunk, CommType::kReduceScatter, parameters, sizes_.gradient);
  }
  double sharded_s(const Chunk& chunk, CommType comm, const ParameterCount& parameters, int width) {
    const ChunkPiece where{chunk.stage, chunk.index, 0};  // chunks fall into pieces where these cut
    return costs_.copies_s(where, false, comm, Bytes(parameters.dense) * width,
                           job_.hsdp_replicas) +
           costs_.copies_s(where, true, comm, Bytes(parameters.expert) * width, job_.hsdp_replicas);
  }

  Chunk make_chunk(const ModelChunk& what, Stage& stage) {
    Chunk chunk;
    chunk.stage = stage.index;
    chunk.index = stage.chunks.size();
    chunk.units = costs_.model(stage.index).units(what);
    std::int64_t width = 0;
    for (const UnitTimes* unit : chunk.units) {
      chunk.forward += unit->forward;
      chunk.backward += unit->backward;
      chunk.input += unit->input;
      chunk.weights += unit->weights;
      stage.compute +=
          static_cast<double>(microbatches_) * (unit->compute_forward + unit->compute_backward);
      stage.parameters += unit->unit->parameters;
      width = unit->unit->residual_width > 0 ? unit->unit->residual_width : width;
    }
    chunk.output_s =
        costs_.send_s(stage.index, Bytes(sizes_.local_tokens) * width * sizes_.activation);
    if (job_.sharding == Sharding::kZero3) {
      shard(chunk);
    } else {
      fill_buckets(chunk);
    }
    return chunk;
  }

  /// Units wait for their parameters, which are gathered while the unit before runs.
  void shard(Chunk& chunk) {
    const std::size_t count = chunk.units.size();
    std::vector<double> gather;
    for (const UnitTimes* unit : chunk.units) {
      gather.push_back(gather_s(chunk, unit->unit->parameters));
      const double scatter = scatter_s(chunk, unit->unit->parameters);
      chunk.traffic += 2 * gather.back() + scatter;
    }
    if (count == 0) {
      return;
    }
    chunk.last_reduction = scatter_s(chunk, chunk.units.front()->unit->parameters);
    const auto pass = [&](double UnitTimes::*time, bool backward) {
      double sum = gather[backward ? count - 1 : 0];
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t u = backward ? count - 1 - k : k;
        const double ahead = k + 1 == count ? 0 : gather[backward ? u - 1 : u + 1];
        sum += std::max(chunk.units[u]->*time, ahead);
      }
      return sum;
    };
    chunk.forward = pass(&UnitTimes::forward, false);
    chunk.backward = pass(&UnitTimes::backward, true);
    chunk.input = pass(&UnitTimes::input, true);
  }

  void fill_buckets(Chunk& chunk) {
    chunk.buckets = buckets_of(chunk, schedule_.splits_backward);
    if (gathers_buckets()) {
      chunk.gathers = schedule_.splits_backward ? buckets_of(chunk, false) : chunk.buckets;
    }
    chunk.gathered.assign(chunk.units.size(), 0);
  }

  std::vector<Chunk::Bucket> buckets_of(const Chunk& chunk, bool split) const {
    std::vector<PlacedUnit> placed;
    for (const UnitTimes* unit : chunk.units) {
      placed.push_back({{}, unit->unit});
    }
    const bool first = is_first_chunk(job_, static_cast<std::int64_t>(chunk.stage),
                                      static_cast<std::int64_t>(chunk.index));
    const ChunkReduction reduction =
        chunk_reduction(placed, job_, first, split, costs_.cuts(chunk.stage, chunk.index));
    std::vector<Chunk::Bucket> buckets;
    for (const bool expert : {false, true}) {
      if ((expert ? expert_ranks_ : dense_ranks_) < 2) {
        continue;
      }
      for (const GradientBucket& bucket : expert ? reduction.expert : reduction.dense) {
        const GradientItem& item = reduction.items[bucket.last];
        buckets.push_back(
            {bucket.last, item.unit, item.part, expert, bucket.parameters, bucket.piece});
      }
    }
    std::ranges::stable_sort(buckets, {}, &Chunk::Bucket::last);
    return buckets;
  }

  double bucket_s(const Chunk& chunk, const Chunk::Bucket& bucket, CommType comm, int width) {
    return costs_.copies_s({chunk.stage, chunk.index, bucket.piece}, bucket.expert, comm,
                           Bytes(bucket.parameters) * width, 1);
  }

  bool gathers_buckets() const {
    return job_.sharding == Sharding::kZero1 || job_.sharding == Sharding::kZero2;
  }

  CommType reduction_comm() const {
    return gathers_buckets() ? CommType::kReduceScatter : CommType::kAllReduce;
  }

  /// What the step before left to gather: buckets in the order in which units need them. A unit
  /// waits for the one that holds its last parameters at least.
  void gather_buckets(Stage& stage) {
    if (!gathers_buckets() || !job_.overlap_parameters) {
      return;
    }
    for (Chunk& chunk : stage.chunks) {
      for (const bool expert : {false, true}) {
        for (std::size_t i = chunk.gathers.size(); i-- > 0;) {
          const Chunk::Bucket& bucket = chunk.gathers[i];
          if (bucket.expert == expert) {
            stage.dp_free += bucket_s(chunk, bucket, CommType::kAllGather, sizes_.parameter);
            double& unit = chunk.gathered[bucket.unit];
            unit = std::max(unit, stage.dp_free);
          }
        }
      }
    }
  }

  /// When the pass that is next could have its input; below 0: not known yet.
  double arrival(std::size_t s, const PipelineSlot& slot) const {
    if (slot.backward && slot.part == BackwardPart::kWeights) {
      return 0;
    }
    const std::int64_t pp = job_.pp, v = slot.chunk * pp + static_cast<std::int64_t>(s);
    const std::int64_t last = pp * static_cast<std::int64_t>(stages_[s].chunks.size()) - 1;
    const std::int64_t from = slot.backward ? v + 1 : v - 1;
    if (from < 0 || from > last) {
      return 0;
    }
    const auto at = static_cast<std::size_t>(from * microbatches_ + slot.microbatch);
    const double end = slot.backward ? backward_[at] : forward_[at];
    if (end < 0) {
      return end;
    }
    // What crosses is the output of the lower of the two, either way.
    const auto lower = static_cast<std::size_t>(slot.backward ? v : from);
    const auto stages = static_cast<std::size_t>(pp);
    return end + stages_[lower % stages].chunks[lower / stages].output_s;
  }

  void run_passes() {
    const std::size_t virtual_stages = stages_.size() * stages_.front().chunks.size();
    forward_.assign(virtual_stages * static_cast<std::size_t>(microbatches_), -1);
    backward_ = forward_;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        Stage& stage = stages_[s];
        while (stage.next < stage.slots.size()) {
          const PipelineSlot& slot = stage.slots[stage.next];
          const double input = arrival(s, slot);
          if (input < 0) {
            break;
          }
          pass(s, slot, std::max(stage.free, input));
          ++stage.next;
          moved = true;
        }
      }
    }
    for (const Stage& stage : stages_) {
      LOCKSTEP_CHECK(stage.next == stage.slots.size(), "no schedule waits in a circle");
    }
  }

  /// Less than run_passes() finds, by what little the passes of different stages wait for each
  /// other in between: a stage begins when the first microbatch could come and runs all its passes;
  /// the last microbatch then goes back through the stages before. O(pp vpp).
  void sum_passes() {
    const bool split = schedule_.splits_backward;
    double head = 0;
    for (Stage& stage : stages_) {
      double round = 0;
      for (const Chunk& chunk : stage.chunks) {
        round += chunk.forward + (split ? chunk.input + chunk.weights : chunk.backward);
      }
      stage.free = head + round * static_cast<double>(microbatches_);
      head += stage.chunks.front().forward + stage.chunks.front().output_s;
    }
    for (std::size_t s = stages_.size() - 1; !split && s-- > 0;) {
      const Chunk& first = stages_[s].chunks.front();
      stages_[s].free =
          std::max(stages_[s].free, stages_[s + 1].free + first.output_s + first.backward);
    }
    for (Stage& stage : stages_) {
      reduce_last(stage);
    }
  }

  /// Of the last microbatch, whose pass through the first chunk is the last of all.
  void reduce_last(Stage& stage) {
    const auto last = static_cast<std::int32_t>(microbatches_ - 1);
    for (std::size_t c = stage.chunks.size(); c-- > 0;) {
      const Chunk& chunk = stage.chunks[c];
      if (job_.sharding == Sharding::kZero3) {
        stage.dp_free = std::max(stage.dp_free, stage.free + (c == 0 ? chunk.last_reduction : 0));
        continue;
      }
      const auto add = [&](BackwardPart part, double begin) {
        reduce(stage, chunk, {true, static_cast<std::int32_t>(c), last, part}, begin);
      };
      if (schedule_.splits_backward) {
        add(BackwardPart::kInput, 0);
        add(BackwardPart::kWeights, c == 0 ? stage.free - chunk.weights : 0);
      } else {
        add(BackwardPart::kWhole, c == 0 ? stage.free - chunk.backward : 0);
      }
    }
    if (job_.sharding == Sharding::kZero2) {
      stage.dp_free = std::max(stage.dp_free, reductions_s(stage));
    }
  }

  /// ZeRO-2: of all microbatches.
  double reductions_s(const Stage& stage) {
    double sum = 0;
    for (const Chunk& chunk : stage.chunks) {
      for (const Chunk::Bucket& bucket : chunk.buckets) {
        sum += bucket_s(chunk, bucket, CommType::kReduceScatter, sizes_.gradient);
      }
    }
    return sum * static_cast<double>(microbatches_);
  }

  void pass(std::size_t s, const PipelineSlot& slot, double begin) {
    Stage& stage = stages_[s];
    const Chunk& chunk = stage.chunks[static_cast<std::size_t>(slot.chunk)];
    const auto at = (static_cast<std::size_t>(slot.chunk) * stages_.size() + s) *
                        static_cast<std::size_t>(microbatches_) +
                    static_cast<std::size_t>(slot.microbatch);
    if (!slot.backward) {
      double end = begin;
      if (slot.microbatch == 0 && job_.sharding != Sharding::kZero3) {
        for (std::size_t u = 0; u < chunk.units.size(); ++u) {
          end = std::max(end, chunk.gathered[u]) + chunk.units[u]->forward;
        }
      } else {
        end += chunk.forward;
      }
      stage.free = forward_[at] = end;
      return;
    }
    const bool weights = slot.part == BackwardPart::kWeights;
    stage.free = begin + (weights                             ? chunk.weights
                          : slot.part == BackwardPart::kInput ? chunk.input
                                                              : chunk.backward);
    if (!weights) {
      backward_[at] = stage.free;
    }
    const bool last = slot.microbatch == microbatches_ - 1;
    if (job_.sharding == Sharding::kZero3) {
      if (last && slot.part != BackwardPart::kInput) {
        stage.dp_free = std::max(stage.dp_free, stage.free + chunk.last_reduction);
      }
    } else if (last || job_.sharding == Sharding::kZero2) {
      reduce(stage, chunk, slot, begin);
    }
  }

  /// The buckets that a backward pass from `begin` on completes.
  void reduce(Stage& stage, const Chunk& chunk, const PipelineSlot& slot, double begin) {
    for (const Chunk::Bucket& bucket : chunk.buckets) {
      if (bucket.part != slot.part) {
        continue;
      }
      double ready = begin;
      for (std::size_t u = bucket.unit + 1; u < chunk.units.size(); ++u) {
        const UnitTimes& unit = *chunk.units[u];
        ready += slot.part == BackwardPart::kWhole   ? unit.backward
                 : slot.part == BackwardPart::kInput ? unit.input
                                                     : unit.weights;
      }
      stage.dp_free = std::max(stage.dp_free, ready) +
                      bucket_s(chunk, bucket, reduction_comm(), sizes_.gradient);
    }
  }

  StepFloor finish() {
    StepFloor floor;
    double together = 0, update = 0, exchanged = 0;
    for (Stage& stage : stages_) {
      const std::int64_t owned = owned_parameters(job_, stage.parameters);
      const double norm = costs_.time_s(stage.index, gradient_norm(owned, sizes_));
      const double adam =
          costs_.time_s(stage.index, optimizer_update(owned, sizes_)) +
          costs_.time_s(stage.index, gradient_reset(job_, stage.parameters, sizes_)) +
          costs_.time_s(stage.index, parameter_copy(owned, sizes_));
      double traffic = 0, gathers = 0, reductions = 0;
      const double times =
          job_.sharding == Sharding::kZero2 ? static_cast<double>(microbatches_) : 1;
      for (const Chunk& chunk : stage.chunks) {
        traffic += chunk.traffic * static_cast<double>(microbatches_);
        for (const Chunk::Bucket& bucket : chunk.buckets) {
          reductions += times * bucket_s(chunk, bucket, reduction_comm(), sizes_.gradient);
        }
        for (const Chunk::Bucket& bucket : chunk.gathers) {
          if (!job_.overlap_parameters) {
            gathers += bucket_s(chunk, bucket, CommType::kAllGather, sizes_.parameter);
          }
        }
      }
      together =
          std::max(together, std::max({stage.free, stage.dp_free, traffic, stage.compute}) + norm);
      update = std::max(update, adam + gathers);
      exchanged = std::max(exchanged, traffic + reductions);
      floor.compute_s += (stage.compute + norm + adam) / static_cast<double>(stages_.size());
    }
    floor.step_s = (together + update) * kSlack;
    floor.unhidden_s = floor.step_s + exchanged;
    return floor;
  }

  const Job& job_;
  StageCosts& costs_;
  const PipelineSchedule& schedule_;
  RankSizes sizes_;
  std::int64_t dense_ranks_, expert_ranks_, microbatches_;
  bool walked_;
  std::vector<Stage> stages_;
  std::vector<double> forward_, backward_;  // ends, by virtual stage and microbatch
};

/// Of a job whose copies are alike, on GPUs of one type.
class UniformCosts final : public StageCosts {
 public:
  UniformCosts(const Job& job, UnitTimesCache& units, CollectiveBound& bounds)
      : model_(units.of(job)), units_(units), bounds_(bounds), layout_(layout_of(job)) {}

  const ModelTimes& model(std::size_t) override { return model_; }
  double time_s(std::size_t, const Operator& op) override { return units_.time_s(op); }
  double send_s(std::size_t, Bytes bytes) override {
    return bounds_.least_s(layout_, RankGroup::kPp, CommType::kSendRecv, bytes);
  }
  double copies_s(const ChunkPiece&, bool expert, CommType comm, Bytes bytes,
                  std::int64_t replicas) override {
    return bounds_.least_s(layout_, expert ? RankGroup::kExpertDp : RankGroup::kDpCp, comm, bytes,
                           replicas);
  }
  std::span<const std::size_t> cuts(std::size_t, std::size_t) const override { return {}; }

 private:
  const ModelTimes& model_;
  const UnitTimesCache& units_;
  CollectiveBound& bounds_;
  RankLayout layout_;
};

}  // namespace

StepFloor step_floor(const Job& job, StageCosts& costs, std::int64_t most_walked) {
  return Floor(job, costs, most_walked).run();
}

StepBound::StepBound(const Topology& topology, OperatorTime time, const Speeds& speeds)
    : bounds_(topology, speeds), units_(std::move(time), bounds_, speeds.compute) {}

double StepBound::busy_s(const Job& job) {
  const ModelTimes& model = units_.of(job);
  const PipelineSchedule& schedule = pipeline_schedule_named(job.schedule);
  double sum = 0;
  const ModelChunk whole{0, layer_count(job.model), true, true};
  for (const UnitTimes* unit : model.units(whole)) {
    if (schedule.side_by_side) {  // a forward pass runs in turns with a backward one
      sum += unit->compute_forward + unit->compute_backward;
      continue;
    }
    sum += unit->forward + (schedule.splits_backward
                                ? std::min(unit->backward, unit->input + unit->weights)
                                : unit->backward);
  }
  return sum * static_cast<double>(job.microbatches()) / static_cast<double>(job.pp) * kSlack;
}

StepFloor StepBound::of(const Job& job, std::int64_t most_walked) {
  if (pipeline_schedule_named(job.schedule).side_by_side) {
    return {busy_s(job), busy_s(job), busy_s(job)};
  }
  UniformCosts costs(job, units_, bounds_);
  return step_floor(job, costs, most_walked);
}

}  // namespace lockstep
