#include "generator/exact/stage_program.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/pass_ops.h"
#include "generator/exact/stage_streams.h"

namespace lockstep {

StageProgram::StageProgram(const Job& job, const StagePlan& plan, const OperatorTime& time,
                           Families& families, std::int64_t stage)
    : job_(job),
      plan_(plan),
      time_(time),
      families_(families),
      stage_(stage),
      dense_ranks_(job.dp() * job.cp),
      expert_ranks_(layout_of(job).expert_dp()) {
  for (std::int64_t chunk = 0; chunk < job.vpp; ++chunk) {
    units_.push_back(plan.units(stage, chunk));
    reductions_.push_back(chunk_reduction(units_.back(), job, dense_ranks_, expert_ranks_));
    gathered_.emplace_back(units_.back().size());
  }
  program_.streams.assign(kStageStreamNames.begin(), kStageStreamNames.end());
}

OpProgram StageProgram::build(std::vector<PipelineSlot> slots) {
  if (job_.overlap_parameters) {
    gather_buckets({});
  }
  std::vector<std::int64_t> forward(static_cast<std::size_t>(job_.vpp), 0), backward = forward;
  for (const PipelineSlot& slot : slots) {
    auto& done = (slot.backward ? backward : forward)[static_cast<std::size_t>(slot.chunk)];
    ++done;
    run(slot, done == 1, done == job_.microbatches());
  }
  type_ = OpType::kOther;
  microbatch_ = chunk_ = -1;
  finish();
  return std::move(program_);
}

std::int32_t StageProgram::add(Op op) {
  if (op.type == OpType::kOther) {
    op.type = type_;
  }
  op.microbatch = microbatch_;
  op.chunk = chunk_;
  program_.ops.push_back(std::move(op));
  return static_cast<std::int32_t>(program_.ops.size()) - 1;
}

std::int32_t StageProgram::compute(OpType type, const Operator& op, Ops after) {
  Op out;
  out.type = type;
  out.name = op.name;
  out.stream = kComputeStream;
  out.compute = time_(op);
  out.after = std::move(after);
  return add(std::move(out));
}

std::int32_t StageProgram::collective(OpType type, std::string name, std::int32_t stream,
                                      CommType comm, std::int32_t family, Bytes bytes, Ops after) {
  Op op;
  op.name = std::move(name);
  op.type = type;
  op.stream = stream;
  op.comm = comm;
  op.group = family;
  op.bytes = bytes;
  op.after = std::move(after);
  return add(std::move(op));
}

std::int32_t StageProgram::message(const PipelineSlot& slot, bool send, Bytes bytes, Ops after) {
  Op op;
  op.name = fmt::format("{} {} chunk {} {}", slot.backward ? "backward" : "forward",
                        slot.microbatch, slot.chunk, send ? "out" : "in");
  op.type = slot.backward ? (send ? OpType::kBackwardSend : OpType::kBackwardReceive)
                          : (send ? OpType::kForwardSend : OpType::kForwardReceive);
  op.stream = slot.backward ? (send ? kBackwardOutStream : kBackwardInStream)
                            : (send ? kForwardOutStream : kForwardInStream);
  op.comm = CommType::kSendRecv;
  const bool same_pair = job_.pp == 2 && job_.vpp > 1;
  op.group = slot.backward && same_pair ? families_.pipeline_back() : families_.of(RankGroup::kPp);
  op.peer = send == slot.backward ? -1 : 1;
  op.send = send;
  op.bytes = bytes;
  op.after = std::move(after);
  return add(std::move(op));
}

StageProgram::Ops StageProgram::run_pass(const FoldedPass& pass, const std::string& prefix,
                                         const Ops& entry, ChunkReduction* reduction,
                                         std::size_t unit) {
  const auto first = static_cast<std::int32_t>(program_.ops.size());
  std::vector<std::int32_t> place;  // of each step: its operation
  for (std::size_t i = 0; i < pass.steps.size(); ++i) {
    const FoldedStep& step = pass.steps[i];
    Ops after;
    for (const std::int32_t earlier : step.after) {
      after.push_back(place[static_cast<std::size_t>(earlier)]);
    }
    Op op = op_of(step, prefix + step.name, families_);
    op.after = step.after.empty() ? entry : std::move(after);
    place.push_back(add(std::move(op)));
    if (reduction == nullptr || next_item_ == reduction->items.size()) {
      continue;
    }
    const GradientItem& item = reduction->items[next_item_];
    if (item.unit == unit && item.step == i) {
      reduce_complete(*reduction, next_item_, place.back());
      ++next_item_;
    }
  }
  LOCKSTEP_CHECK(pass.steps.empty() || !pass.exits.empty(), "a pass has an end");
  Ops exits = first == static_cast<std::int32_t>(program_.ops.size()) ? entry : Ops();
  for (const std::int32_t step : pass.exits) {
    exits.push_back(place[static_cast<std::size_t>(step)]);
  }
  return exits;
}

void StageProgram::run(const PipelineSlot& slot, bool first, bool last) {
  const auto chunk = static_cast<std::size_t>(slot.chunk);
  type_ = slot.backward ? OpType::kBackward : OpType::kForward;
  microbatch_ = slot.microbatch;
  chunk_ = slot.chunk;
  const bool entry_stage = stage_ == 0 && slot.chunk == 0;
  const bool final_stage = stage_ == job_.pp - 1 && slot.chunk == job_.vpp - 1;
  // What this chunk gets from the one before (or gives it back), and what it hands on.
  const auto before = [&] {
    return stage_ > 0 ? plan_.output_bytes(stage_ - 1, slot.chunk)
                      : plan_.output_bytes(job_.pp - 1, slot.chunk - 1);
  };
  const auto behind = [&] { return plan_.output_bytes(stage_, slot.chunk); };
  const bool receives = slot.backward ? !final_stage : !entry_stage;
  const bool sends = slot.backward ? !entry_stage : !final_stage;
  if (receives) {
    exits_.push_back(message(slot, false, slot.backward ? behind() : before(), {}));
  }
  const std::vector<PlacedUnit>& units = units_[chunk];
  const bool reduces = slot.backward && (last || job_.sharding == Sharding::kZero2) &&
                       job_.sharding != Sharding::kZero3;
  ChunkReduction* reduction = reduces ? &reductions_[chunk] : nullptr;
  next_item_ = 0;
  const bool shards = job_.sharding == Sharding::kZero3;
  Ops ready =
      shards && !units.empty()
          ? gather("first", units[slot.backward ? units.size() - 1 : 0].unit->parameters, exits_)
          : Ops();
  for (std::size_t k = 0; k < units.size(); ++k) {
    const std::size_t u = slot.backward ? units.size() - 1 - k : k;
    const PlacedUnit& placed = units[u];
    Ops entry = joined(exits_, ready);
    if (shards && k + 1 < units.size()) {
      const PlacedUnit& next = units[slot.backward ? u - 1 : u + 1];
      ready = gather(next.name, next.unit->parameters, entry);
    }
    if (!slot.backward && first) {
      entry = joined(std::move(entry), gathered_[chunk][u]);
    }
    const std::string prefix = fmt::format("{} {} {} ", slot.backward ? "backward" : "forward",
                                           slot.microbatch, placed.name);
    exits_ = run_pass(slot.backward ? placed.unit->backward : placed.unit->forward, prefix, entry,
                      reduction, u);
    if (shards && slot.backward) {
      reduce_unit(placed, last, exits_);
    }
  }
  if (sends) {
    message(slot, true, slot.backward ? before() : behind(), exits_);
  }
  if (!slot.backward && final_stage && last && dense_ranks_ > 1) {
    collective(OpType::kLoss, "loss", kGlobalStream, CommType::kAllReduce,
               families_.of(RankGroup::kDpCp), Bytes(8), exits_);
  }
}

}  // namespace lockstep
