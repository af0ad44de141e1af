#include "simulator/replay/analytic_replay.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/network/analytic/collective_time.h"
#include "simulator/replay/exposure.h"
#include "simulator/replay/formula_runs.h"
#include "simulator/replay/op_names.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step_programs.h"
#include "simulator/replay/step_simulation.h"
#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

CommFormula formula_of(const AnalyticOptions& options) {
  using Asked = std::tuple<CommType, GroupKind, std::int64_t, double, double, std::int64_t>;
  CommFormula formula;
  formula.collective = [&options, known = std::map<Asked, Time>()](
                           const ProgramOp& op, GroupKind kind,
                           std::span<const std::int32_t> members) mutable {
    const GroupPlacement<double> shape = placement_of(members, options);
    const auto [at, is_new] = known.try_emplace(
        {op.comm, kind, std::ssize(members), shape.nodes, shape.ranks_per_node, op.bytes.count()});
    if (is_new) {
      at->second =
          placed_collective_time({op.comm, kind, std::ssize(members), op.bytes}, shape, options);
    }
    return at->second;
  };
  formula.message = [&options](const ProgramOp& op, std::int32_t source, std::int32_t destination) {
    const std::array<std::int32_t, 2> both{source, destination};
    return placed_collective_time({op.comm, GroupKind::kPp, 2, op.bytes},
                                  placement_of(both, options), options);
  };
  return formula;
}

/// Whether groups of a family that operations use lie otherwise on servers than the first one, for
/// which each program's time is worked out.
bool groups_lie_apart(const RankPrograms& work, const AnalyticOptions& options) {
  std::set<std::int32_t> used;
  for (const Program& program : work.programs) {
    for (const ProgramOp& op : program.ops()) {
      used.insert(op.family);
    }
  }
  used.erase(-1);
  return std::ranges::any_of(used, [&](std::int32_t family) {
    const auto groups = work.families[static_cast<std::size_t>(family)].groups();
    const auto shape = [&](const std::vector<std::int32_t>& members) {
      const GroupPlacement<double> placed = placement_of(members, options);
      return std::tuple(members.size(), placed.nodes, placed.ranks_per_node);
    };
    return std::ranges::any_of(
        groups, [&](const auto& each) { return shape(each) != shape(groups.front()); });
  });
}

}  // namespace

StepResult analytic_replay(const Workload& workload, const AnalyticOptions& options,
                           const AnalyticStragglers& slow) {
  validate(options);
  const Parallelism& parallel = workload.jobs.front().parallel;
  if (options.gpus > 0 && parallel.gpus > 0 && options.gpus != parallel.gpus) {
    throw Error(fmt::format("the job is one of {} ranks", parallel.gpus)).field("--gpus");
  }
  const StepPrograms compiled =
      StepPrograms::of(workload, options.gpus > 0 ? options.gpus : parallel.gpus, StepOptions());
  const RankPrograms& work = compiled.work;

  StragglerContext context;
  context.families = work.families;
  for (std::int32_t rank = 0; rank < work.ranks(); ++rank) {
    context.server_of_rank.push_back(rank / static_cast<std::int32_t>(options.gpus_per_server));
  }
  context.seed = slow.seed;
  context.step = slow.step;
  const StragglerPlan plan(slow.stragglers, context);
  if (!plan.changes().empty() || !plan.faults().empty()) {
    throw Error("the analytic engine has no links that could be slow").hint("use --engine flow");
  }
  const OpNames names(compiled);
  ReplayOptions replay;
  replay.op_name = [&names](std::int32_t rank, std::int32_t op) { return names(rank, op); };
  if (!plan.empty()) {
    replay.duration = [&plan](std::int32_t rank, std::int32_t op, const ProgramOp& what,
                              Time begin) { return plan.duration(rank, op, what, begin); };
  }
  const CommFormula formula = formula_of(options);
  const ReplayResult run = replay_by_formula(work, formula, replay);

  StepResult result;
  if (plan.uneven()) {
    result.warnings.emplace_back("all-to-alls take as long as even ones by formula");
  }
  if (plan.empty() && groups_lie_apart(work, options)) {
    result.warnings.emplace_back(
        "groups of one kind lie on different numbers of servers: one rank of each program stands "
        "for all by formula (--engine flow looks at each)");
  }
  result.parallel = parallel;
  result.gpus = work.ranks();
  result.parallel.gpus = work.ranks();
  result.total = run.end;
  result.first_rank_end = *std::ranges::min_element(run.rank_end);
  result.last_rank_end = run.end;
  result.skew = run.end - run.rank_end.front();
  result.replay_work = run.work;
  const Exposure exposure = exposure_of(work.program(0), work.families, run.first_rank);
  result.compute = exposure.compute;
  result.exposed_by_group = exposure.by_group;
  result.bubble = exposure.bubble;
  result.exposed = run.end - exposure.compute - exposure.bubble;
  return result;
}

}  // namespace lockstep
