#include "generator/process/process_program.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/pass_ops.h"

namespace lockstep {
namespace {

using Kind = ProcessItem::Kind;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 53;
constexpr std::int64_t kMaxTimes = 1'000'000;

/// Sets variables for a scope and brings the old ones back at its end.
class Scope {
 public:
  explicit Scope(Variables& variables) : variables_(variables), before_(variables) {}
  ~Scope() { variables_ = std::move(before_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Variables& variables_;
  Variables before_;
};

StageStream stream_of(const ProcessGroup& group) {
  if (!group.kind.has_value()) {
    return kGlobalStream;
  }
  switch (*group.kind) {
    case RankGroup::kTp:
      return kTpStream;
    case RankGroup::kCp:
      return kCpStream;
    case RankGroup::kEp:
    case RankGroup::kExpertTp:
      return kEpStream;
    case RankGroup::kDp:
    case RankGroup::kDpCp:
    case RankGroup::kExpertDp:
      return kDpStream;
    default:
      return kGlobalStream;
  }
}

}  // namespace

ProcessProgram::ProcessProgram(const Job& job, const StagePlan& plan, const OperatorTime& time,
                               Families& families, const Process& process, std::int64_t stage,
                               Limits limits)
    : job_(job),
      plan_(plan),
      time_(time),
      families_(families),
      process_(process),
      stage_(stage),
      limits_(limits),
      layout_(layout_of(job)),
      variables_(stage_variables(job, plan, stage)) {
  for (const auto& [name, value] : process.variables) {
    if (variables_.count(name) > 0) {
      throw Error(fmt::format("the variable '{}' is there already", name))
          .at(value.place.file, value.place.line)
          .field(value.place.field)
          .expected("a name that neither the job nor the model has");
    }
    variables_[name] = evaluate(value.text, variables_, value.place);
  }
  for (std::int64_t chunk = 0; chunk < job.vpp; ++chunk) {
    units_.push_back(plan.units(stage, chunk));
    buckets_.push_back(buckets_of(units_.back(), job, is_first_chunk(job, stage, chunk)));
    all_units_.insert(all_units_.end(), units_.back().begin(), units_.back().end());
  }
  program_.streams = stage_streams(job);
}

OpProgram ProcessProgram::build(const std::vector<PipelineSlot>& slots, bool with_init) {
  if (with_init) {
    prefix_ = "init ";
    run(process_.init, {});
  }
  init_ops_ = program_.ops.size();
  for (const PipelineSlot& slot : slots) {
    const Scope scope(variables_);
    add_slot_variables(variables_, job_, plan_, stage_, slot);
    type_ = slot.backward ? OpType::kBackward : OpType::kForward;
    microbatch_ = slot.microbatch;
    chunk_ = slot.chunk;
    prefix_ = fmt::format("{} {} ", slot.backward ? "backward" : "forward", slot.microbatch);
    run(slot.backward ? process_.backward : process_.forward, {&slot, nullptr});
  }
  type_ = OpType::kOther;
  microbatch_ = chunk_ = -1;
  prefix_ = "step ";
  run(process_.step, {});
  return std::move(program_);
}

void ProcessProgram::run(const std::vector<ProcessItem>& items, const Place& place) {
  for (const ProcessItem& item : items) {
    run(item, place);
  }
}

void ProcessProgram::run(const ProcessItem& item, const Place& place) {
  if (--limits_.items < 0) {
    throw Error("the process has too many items to run, repetitions counted")
        .at(item.place.file, item.place.line)
        .field(item.place.field)
        .hint("fewer repetitions or microbatches");
  }
  const auto chosen = [&] {
    return !item.when.has_value() || evaluate(item.when->text, variables_, item.when->place) != 0;
  };
  if (item.with.empty()) {
    if (chosen()) {
      run_chosen(item, place);
    }
    return;
  }
  const Scope scope(variables_);
  for (const auto& [name, value] : item.with) {
    variables_[name] = evaluate(value.text, variables_, value.place);
  }
  if (chosen()) {
    run_chosen(item, place);
  }
}

void ProcessProgram::run_chosen(const ProcessItem& item, const Place& place) {
  switch (item.kind) {
    case Kind::kComm:
      return collective(item);
    case Kind::kSend:
    case Kind::kReceive:
      return message(item);
    case Kind::kCompute:
      return compute(item);
    case Kind::kRun:
      if (place.slot == nullptr) {
        throw Error("the model's passes run under forward and backward")
            .at(item.place.file, item.place.line)
            .field(item.place.field);
      }
      if (place.unit != nullptr) {
        return pass(*place.unit, place.slot->backward);
      }
      for (const std::size_t unit : unit_order(place)) {
        pass(units_at(place)[unit], place.slot->backward);
      }
      return;
    case Kind::kEach:
      return item.buckets ? each_bucket(item, place) : each_unit(item, place);
    case Kind::kRepeat: {
      const std::int64_t times =
          evaluate_whole(item.times.text, variables_, item.times.place, 0, kMaxTimes);
      const Scope scope(variables_);
      for (std::int64_t turn = 0; turn < times; ++turn) {
        variables_["turn"] = static_cast<double>(turn);
        run(item.items, place);
      }
      return;
    }
    case Kind::kWait:
      tail_ = joined(std::move(tail_), overlapped_);
      overlapped_.clear();
      return;
  }
}

void ProcessProgram::collective(const ProcessItem& item) {
  if (members(item.group) < 2) {
    return;
  }
  Op op;
  op.name = prefix_ + item.name;
  op.type = item.type;
  op.stream = stream_of(item.group);
  op.comm = item.comm;
  op.group = family(item.group);
  op.bytes = Bytes(bytes(item.bytes));
  op.after = tail_;
  follow(add(std::move(op)), item.overlap);
}

/// Messages to the next stage or from the previous one go forward, the others backward: streams of
/// their own, as both go on at a time. A receive waits for nothing.
void ProcessProgram::message(const ProcessItem& item) {
  if (job_.pp < 2) {
    return;
  }
  const bool send = item.kind == Kind::kSend;
  const bool backward = send != item.next;
  Op op;
  op.name = prefix_ + item.name;
  op.type = backward ? (send ? OpType::kBackwardSend : OpType::kBackwardReceive)
                     : (send ? OpType::kForwardSend : OpType::kForwardReceive);
  op.stream = backward ? (send ? kBackwardOutStream : kBackwardInStream)
                       : (send ? kForwardOutStream : kForwardInStream);
  op.comm = CommType::kSendRecv;
  const bool same_pair = job_.pp == 2 && job_.vpp > 1;
  op.group = backward && same_pair ? families_.pipeline_back() : families_.of(RankGroup::kPp);
  op.peer = item.next ? 1 : -1;
  op.send = send;
  op.bytes = Bytes(bytes(item.bytes));
  if (send) {
    op.after = tail_;
    add(std::move(op));
  } else {
    tail_.push_back(add(std::move(op)));
  }
}

void ProcessProgram::compute(const ProcessItem& item) {
  Operator work;
  work.name = item.name;
  const auto amount = [&](const ProcessExpression& expression) {
    const double value = evaluate(expression.text, variables_, expression.place);
    if (value < 0) {
      throw Error(fmt::format("{} is below 0", value))
          .at(expression.place.file, expression.place.line)
          .field(expression.place.field);
    }
    return value;
  };
  work.flops = amount(item.flops);
  work.bytes = amount(item.bytes);
  work.memory_work = item.work;
  work.element_bytes = 4;
  Op op;
  op.name = prefix_ + item.name;
  op.type = item.type;
  op.stream = kComputeStream;
  op.compute = time_(work);
  op.after = tail_;
  follow(add(std::move(op)), false);
}

void ProcessProgram::pass(const PlacedUnit& placed, bool backward) {
  const FoldedPass& steps = backward ? placed.unit->backward : placed.unit->forward;
  Ops place;  // of each step: its operation
  for (const FoldedStep& step : steps.steps) {
    Op op = op_of(step, fmt::format("{}{} {}", prefix_, placed.name, step.name), families_);
    for (const std::int32_t earlier : step.after) {
      op.after.push_back(place[static_cast<std::size_t>(earlier)]);
    }
    if (step.after.empty()) {
      op.after = tail_;
    }
    place.push_back(add(std::move(op)));
  }
  if (!place.empty()) {
    tail_.clear();
    for (const std::int32_t step : steps.exits) {
      tail_.push_back(place[static_cast<std::size_t>(step)]);
    }
  }
}

/// The units of a pass in its order; outside a pass those of the whole stage, forward.
std::vector<std::size_t> ProcessProgram::unit_order(const Place& place) const {
  std::vector<std::size_t> order(units_at(place).size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = place.slot != nullptr && place.slot->backward ? order.size() - 1 - i : i;
  }
  return order;
}

const std::vector<PlacedUnit>& ProcessProgram::units_at(const Place& place) const {
  return place.slot != nullptr ? units_[static_cast<std::size_t>(place.slot->chunk)] : all_units_;
}

void ProcessProgram::each_unit(const ProcessItem& item, const Place& place) {
  const Scope scope(variables_);
  for (const std::size_t u : unit_order(place)) {
    const PlacedUnit& unit = units_at(place)[u];
    const bool backward = place.slot != nullptr && place.slot->backward;
    add_unit_variables(
        variables_, unit,
        backward ? buckets_[static_cast<std::size_t>(place.slot->chunk)][u] : UnitBuckets());
    const std::string outer = prefix_;
    prefix_ += place.slot == nullptr ? unit.name + " " : "";
    run(item.items, {place.slot, &unit});
    prefix_ = outer;
  }
}

void ProcessProgram::each_bucket(const ProcessItem& item, const Place& place) {
  const Scope scope(variables_);
  for (std::size_t chunk = 0; chunk < units_.size(); ++chunk) {
    if (place.slot != nullptr && place.slot->chunk != static_cast<std::int32_t>(chunk)) {
      continue;
    }
    for (auto bucket = buckets_[chunk].rbegin(); bucket != buckets_[chunk].rend(); ++bucket) {
      const std::int64_t parameters = item.experts ? bucket->expert : bucket->dense;
      if (parameters > 0) {
        variables_["bucket_parameters"] = static_cast<double>(parameters);
        run(item.items, place);
      }
    }
  }
}

std::int64_t ProcessProgram::members(const ProcessGroup& group) const {
  if (!group.kind.has_value()) {
    return job_.pp > 1 && (stage_ == 0 || stage_ == job_.pp - 1) ? 2 : 1;
  }
  switch (*group.kind) {
    case RankGroup::kTp:
      return layout_.tp;
    case RankGroup::kCp:
      return layout_.cp;
    case RankGroup::kDp:
      return layout_.dp();
    case RankGroup::kDpCp:
      return layout_.dp() * layout_.cp;
    case RankGroup::kPp:
      return layout_.pp;
    case RankGroup::kModel:
      return layout_.tp * layout_.pp;
    case RankGroup::kEp:
      return layout_.ep;
    case RankGroup::kExpertTp:
      return layout_.etp;
    case RankGroup::kExpertDp:
      return layout_.expert_dp();
    case RankGroup::kExpertModel:
      return layout_.ep * layout_.etp * layout_.pp;
    case RankGroup::kTpDpCp:
      return layout_.tp * layout_.dp() * layout_.cp;
    case RankGroup::kWorld:
      return layout_.gpus;
  }
  return 1;
}

std::int32_t ProcessProgram::family(const ProcessGroup& group) {
  return group.kind.has_value() ? families_.of(*group.kind) : families_.embedding();
}

std::int64_t ProcessProgram::bytes(const ProcessExpression& expression) const {
  return evaluate_whole(expression.text, variables_, expression.place, 0, kMaxBytes);
}

std::int32_t ProcessProgram::add(Op op) {
  if (static_cast<std::int64_t>(program_.ops.size()) >= limits_.ops) {
    throw Error(fmt::format("stage {} has more operations than a workload may have", stage_))
        .field("process")
        .expected(fmt::format("at most {}", limits_.ops))
        .hint("fewer microbatches or repetitions");
  }
  if (op.type == OpType::kOther) {
    op.type = type_;
  }
  op.microbatch = microbatch_;
  op.chunk = chunk_;
  program_.ops.push_back(std::move(op));
  return static_cast<std::int32_t>(program_.ops.size()) - 1;
}

void ProcessProgram::follow(std::int32_t op, bool overlap) {
  if (overlap) {
    overlapped_.push_back(op);
  } else {
    tail_ = {op};
  }
}

}  // namespace lockstep
