#include "generator/exact/stage_program.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/interleave.h"
#include "generator/exact/pass_ops.h"
#include "generator/exact/stage_streams.h"

namespace lockstep {

StageProgram::StageProgram(const Job& job, const StagePlan& plan, const OperatorTime& time,
                           Families& families, std::int64_t stage, const StagePieces* pieces)
    : job_(job),
      plan_(plan),
      time_(time),
      families_(families),
      stage_(stage),
      pieces_(pieces),
      bidirectional_(pipeline_schedule_named(job.schedule).bidirectional),
      dense_ranks_(job.dp() * job.cp),
      expert_ranks_(layout_of(job).expert_dp()) {
  for (std::int64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
    units_.push_back(plan.units(stage, chunk));
    const std::span<const std::size_t> cuts =
        pieces == nullptr ? std::span<const std::size_t>()
                          : pieces->chunks[static_cast<std::size_t>(chunk)].cuts;
    const bool first = is_first_chunk(job, stage, chunk);
    const auto reduction = [&](bool split) {
      return chunk_reduction(units_.back(), job, first, split, cuts);
    };
    reductions_.push_back({reduction(false), reduction(true)});
    gathered_.emplace_back(units_.back().size());
  }
  program_.streams = stage_streams(job);
}

OpProgram StageProgram::build(std::vector<PipelineSlot> slots) {
  if (job_.overlap_parameters) {
    gather_buckets({});
  }
  const std::vector<SlotPlace> places = places_of(slots);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::size_t begin = program_.ops.size();
    const Ops entry = exits_;
    run(slots[i], places[i]);
    if (slots[i].beside_next) {
      ++i;
      run_beside(slots[i], places[i], entry, begin);
    }
  }
  type_ = OpType::kOther;
  microbatch_ = chunk_ = -1;
  finish();
  return std::move(program_);
}

std::vector<StageProgram::SlotPlace> StageProgram::places_of(
    const std::vector<PipelineSlot>& slots) const {
  std::vector<SlotPlace> places(slots.size());
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Seen {
    std::size_t first = kNone, forward = kNone, input = kNone, complete = kNone;
  };
  std::vector<Seen> seen(units_.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Seen& chunk = seen[static_cast<std::size_t>(slots[i].chunk)];
    if (!slots[i].backward) {
      chunk.first = std::min(chunk.first, i);
      chunk.forward = i;
    } else if (slots[i].part == BackwardPart::kInput) {
      chunk.input = i;
    } else {
      chunk.complete = i;
    }
  }
  for (const Seen& chunk : seen) {
    places[chunk.first].first = true;
    places[chunk.forward].last = true;
    places[chunk.complete].last = true;
    if (slots[chunk.complete].part == BackwardPart::kWeights) {
      places[chunk.input].last = true;
    }
  }
  return places;
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
  out.host = out.compute > Time() ? job_.host_launch : Time();
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
  const bool same_pair = bidirectional_ || (job_.pp == 2 && job_.vpp > 1);
  op.group = slot.backward && same_pair ? families_.pipeline_back() : families_.of(RankGroup::kPp);
  op.peer = (send == slot.backward) != flipped(slot) ? -1 : 1;
  op.send = send;
  op.bytes = bytes;
  op.after = std::move(after);
  return add(std::move(op));
}

StageProgram::Ops StageProgram::run_pass(const ModelUnit& what, const PipelineSlot& slot,
                                         const std::string& prefix, const Ops& entry,
                                         ChunkReduction* reduction, std::size_t unit) {
  const FoldedPass& pass = what.pass(slot);
  const auto first = static_cast<std::int32_t>(program_.ops.size());
  std::vector<std::int32_t> place;  // of each step: its operation
  for (std::size_t i = 0; i < pass.steps.size(); ++i) {
    const FoldedStep& step = pass.steps[i];
    Ops after;
    for (const std::int32_t earlier : step.after) {
      after.push_back(place[static_cast<std::size_t>(earlier)]);
    }
    Op op = op_of(step, prefix + step.name, families_);
    if (step.after.empty()) {
      op.after = entry;
    } else {
      op.after = std::move(after);
    }
    place.push_back(add(std::move(op)));
    if (reduction == nullptr || next_item_ == reduction->items.size()) {
      continue;
    }
    const GradientItem& item = reduction->items[next_item_];
    if (item.unit == unit && item.step == i && item.part == slot.part) {
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

/// Delayed scaling: the largest values of a pass's operands, over all ranks of the stage.
void StageProgram::share_largest(const std::vector<PlacedUnit>& units, bool backward) {
  if (job_.precision != Precision::kFp8 || job_.fp8_recipe != Fp8Recipe::kDelayed ||
      job_.gpus == job_.pp) {
    return;
  }
  std::int64_t products = 0;
  for (const PlacedUnit& placed : units) {
    products += placed.unit->products;
  }
  if (products > 0) {
    // Input, weight and output of each product; backward the gradients of output and input.
    exits_ = {collective(type_, backward ? "largest gradients" : "largest values", kTpStream,
                         CommType::kAllReduce, families_.of(RankGroup::kTpDpCp),
                         Bytes(products) * (backward ? 8 : 12), std::move(exits_))};
  }
}

void StageProgram::run(const PipelineSlot& slot, const SlotPlace& place) {
  const auto chunk = static_cast<std::size_t>(slot.chunk);
  const bool weights = slot.backward && slot.part == BackwardPart::kWeights;
  type_ = weights ? OpType::kWeightGradient : slot.backward ? OpType::kBackward : OpType::kForward;
  microbatch_ = slot.microbatch;
  chunk_ = slot.chunk;
  const std::int64_t way = flipped(slot) ? job_.pp - 1 - stage_ : stage_;
  const bool entry_stage = way == 0 && (bidirectional_ || slot.chunk == 0);
  const bool final_stage = way == job_.pp - 1 && (bidirectional_ || slot.chunk == job_.vpp - 1);
  // What this chunk gets from the one before (or gives it back), and what it hands on.
  const auto before = [&] {
    return way > 0 ? plan_.output_bytes(flipped(slot) ? stage_ + 1 : stage_ - 1, slot.chunk)
                   : plan_.output_bytes(job_.pp - 1, slot.chunk - 1);
  };
  const auto behind = [&] { return plan_.output_bytes(stage_, slot.chunk); };
  const bool receives = !weights && (slot.backward ? !final_stage : !entry_stage);
  const bool sends = !weights && (slot.backward ? !entry_stage : !final_stage);
  if (receives) {
    exits_.push_back(message(slot, false, slot.backward ? behind() : before(), {}));
  }
  const std::vector<PlacedUnit>& units = units_[chunk];
  const bool reduces = slot.backward && (place.last || job_.sharding == Sharding::kZero2) &&
                       job_.sharding != Sharding::kZero3;
  ChunkReduction* reduction =
      reduces ? &reductions_[chunk][slot.part == BackwardPart::kWhole ? 0 : 1] : nullptr;
  next_item_ = reduction != nullptr ? reduction->first_of(slot.part) : 0;
  const bool shards = job_.sharding == Sharding::kZero3;
  const bool gathers = shards && !weights;
  Ops ready = gathers && !units.empty()
                  ? gather("first", slot.backward ? units.size() - 1 : 0, exits_)
                  : Ops();
  for (std::size_t k = 0; k < units.size(); ++k) {
    const std::size_t u = slot.backward ? units.size() - 1 - k : k;
    const PlacedUnit& placed = units[u];
    Ops entry = joined(exits_, ready);
    if (gathers && k + 1 < units.size()) {
      const std::size_t next = slot.backward ? u - 1 : u + 1;
      ready = gather(units[next].name, next, entry);
    }
    if (!slot.backward && place.first) {
      entry = joined(std::move(entry), gathered_[chunk][u]);
    }
    const std::string prefix = fmt::format("{} {} {} ",
                                           weights         ? "weights"
                                           : slot.backward ? "backward"
                                                           : "forward",
                                           slot.microbatch, placed.name);
    exits_ = run_pass(*placed.unit, slot, prefix, entry, reduction, u);
    if (shards && slot.backward && slot.part != BackwardPart::kInput) {
      reduce_unit(u, place.last, exits_);
    }
  }
  if (!weights) {
    share_largest(units, slot.backward);
  }
  if (sends) {
    message(slot, true, slot.backward ? before() : behind(), exits_);
  }
  if (!slot.backward && final_stage && place.last && dense_ranks_ > 1) {
    collective(OpType::kLoss, "loss", kGlobalStream, CommType::kAllReduce,
               copies_of(piece_of(units.size()), false), Bytes(8), exits_);
  }
}

/// Runs a slot in turns with the one before it, whose operations start at `begin` and which itself
/// came after `entry`.
void StageProgram::run_beside(const PipelineSlot& slot, const SlotPlace& place, const Ops& entry,
                              std::size_t begin) {
  const std::size_t middle = program_.ops.size();
  Ops other = std::exchange(exits_, entry);
  run(slot, place);
  const Ops places = interleave(program_.ops, begin, middle);
  for (Ops* references : {&exits_, &other, &reduced_}) {
    for (std::int32_t& op : *references) {
      if (static_cast<std::size_t>(op) >= begin) {
        op = places[static_cast<std::size_t>(op) - begin];
      }
    }
  }
  exits_ = joined(std::move(exits_), other);
}

}  // namespace lockstep
