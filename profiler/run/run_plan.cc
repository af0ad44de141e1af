#include "profiler/run/run_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/groups.h"
#include "profiler/run/aicb_words.h"
#include "workloads/rank_programs.h"

namespace lockstep {

ComputeCall product_lasting(Time time, double flops) {
  // A square product, its sizes multiples of 64.
  const double side = std::cbrt(time.seconds() * flops / 2);
  const auto size = std::max<std::int64_t>(64, std::llround(side / 64) * 64);
  return {size, size, size, {}};
}

namespace {

void add(RunPlan& plan, RunItem item) {
  plan.largest_bytes = std::max(plan.largest_bytes, item.bytes);
  plan.items.push_back(std::move(item));
}

void add_compute(RunPlan& plan, const RunChoice& choice, const std::string& name, Time time) {
  // SimAI's files say 0 or 1 ns for "not known".
  if (time <= Time::ns(1)) {
    return;
  }
  RunItem item;
  item.name = item.stage = name;
  item.compute = choice.compute == RunCompute::kGemm ? product_lasting(time, choice.flops)
                                                     : ComputeCall{0, 0, 0, time};
  add(plan, std::move(item));
}

RunItem end_of_iteration() {
  RunItem item;
  item.name = "epoch_end";
  item.epoch_end = true;
  return item;
}

RankGroup rank_group_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::kTp:
      return RankGroup::kTp;
    case GroupKind::kDp:
      return RankGroup::kDp;
    case GroupKind::kEp:
      return RankGroup::kEp;
    case GroupKind::kDpEp:
      return RankGroup::kExpertDp;
    case GroupKind::kPp:
      return RankGroup::kPp;
    case GroupKind::kCp:
      return RankGroup::kCp;
    case GroupKind::kWorld:
      break;
  }
  return RankGroup::kWorld;
}

void from_layers(const LayerTable& table, const Parallelism& cut, const RunChoice& choice,
                 RunPlan& plan) {
  GroupTable groups(plan, {choice.world, cut.tp, cut.ep, cut.pp});
  const std::size_t count =
      choice.layers > 0
          ? std::min<std::size_t>(table.layers.size(), static_cast<std::size_t>(choice.layers))
          : table.layers.size();
  const auto phase = [&](const Layer& layer, const LayerPhase& what, const char* stage) {
    const std::string& name = table.names[static_cast<std::size_t>(layer.name)];
    add_compute(plan, choice, name, what.compute);
    if (what.comm == CommType::kNone || what.bytes.count() == 0) {
      return;
    }
    RunItem item;
    item.name = name;
    item.stage = fmt::format("{}.{}", stage, name);
    item.comm = what.comm;
    item.bytes = what.bytes.count();
    item.group = groups.own(rank_group_of(what.group));
    // A lone rank runs its collectives with itself: the path is the same.
    if (choice.world == 1 || plan.groups[static_cast<std::size_t>(item.group)].ranks.size() > 1) {
      add(plan, std::move(item));
    }
  };
  for (std::size_t i = 0; i < count; ++i) {
    phase(table.layers[i], table.layers[i].forward, "forward");
  }
  for (std::size_t i = count; i-- > 0;) {
    phase(table.layers[i], table.layers[i].input_grad, "backward");
    phase(table.layers[i], table.layers[i].weight_grad, "step");
  }
}

void from_ops(const OpTable& table, const RunChoice& choice, RunPlan& plan) {
  // All groups on all ranks in one order: making a communicator takes everybody.
  std::vector<int> own(table.groups.size(), -1);
  for (std::size_t family = 0; family < table.groups.size(); ++family) {
    for (const std::vector<std::int32_t>& members : table.groups[family].members) {
      plan.groups.push_back({table.groups[family].name, members});
      if (std::ranges::find(members, choice.rank) != members.end()) {
        own[family] = static_cast<int>(plan.groups.size()) - 1;
      }
    }
  }
  const OpProgram* program = nullptr;
  for (const OpProgram& candidate : table.programs) {
    for (const RankRange& range : candidate.ranks) {
      for_each_rank(
          range, [&](std::int32_t rank) { program = rank == choice.rank ? &candidate : program; });
    }
  }
  if (program == nullptr) {
    return;  // this rank does nothing
  }
  for (const Op& op : program->ops) {
    if (op.comm == CommType::kNone) {
      add_compute(plan, choice, op.name, op.compute);
      continue;
    }
    RunItem item;
    item.name = item.stage = op.name;
    item.comm = op.comm;
    item.bytes = op.bytes.count();
    if (op.comm == CommType::kSendRecv) {
      item.send = op.send;
      item.peer = op.peer;
      if (op.group >= 0) {
        const auto& members =
            plan.groups[static_cast<std::size_t>(own[static_cast<std::size_t>(op.group)])].ranks;
        const auto size = static_cast<std::int32_t>(members.size());
        const auto place =
            static_cast<std::int32_t>(std::ranges::find(members, choice.rank) - members.begin());
        item.peer = members[static_cast<std::size_t>(((place + op.peer) % size + size) % size)];
      }
    } else {
      item.group = own[static_cast<std::size_t>(op.group)];
      if (item.group < 0 || (choice.world > 1 &&
                             plan.groups[static_cast<std::size_t>(item.group)].ranks.size() < 2)) {
        continue;
      }
    }
    add(plan, std::move(item));
  }
}

}  // namespace

RunPlan run_plan(const Workload& workload, const RunChoice& choice) {
  if (workload.jobs.size() != 1) {
    throw Error(fmt::format("{} jobs", workload.jobs.size()))
        .field("--workload")
        .expected("a workload of one job");
  }
  const WorkloadJob& job = workload.jobs.front();
  const std::int64_t gpus = job.parallel.gpus;
  if (gpus > 0 && gpus != choice.world) {
    throw Error(
        fmt::format("the workload is for {} GPUs, and there are {} ranks", gpus, choice.world))
        .field("--world")
        .expected(fmt::format("{} ranks", gpus))
        .hint("--dry-run --world N prints what would run, without them");
  }
  RunPlan plan;
  plan.world = choice.world;
  plan.rank = choice.rank;
  if (const auto* layers = std::get_if<LayerTable>(&job.work)) {
    from_layers(*layers, job.parallel, choice, plan);
  } else {
    from_ops(std::get<OpTable>(job.work), choice, plan);
  }
  plan.items.push_back(end_of_iteration());
  return plan;
}

}  // namespace lockstep
