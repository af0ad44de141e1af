#include <algorithm>
#include <map>
#include <tuple>

#include "simulator/replay/straggler_plan.h"
#include "trace/read_trace.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {{"file", "", "a trace in what-if's columns (.parquet, .csv)"},
                                      {"gpus", "*", "ranks"}};

/// How long the passes of a trace took, against the median of those of the same kind, stage and
/// model chunk: what is left is who is slow and when, not what a pass costs here.
class MeasuredFactors {
 public:
  explicit MeasuredFactors(const Trace& trace) {
    for (std::size_t i = 0; i < trace.size(); ++i) {
      workers_ = std::max(workers_, trace.dp_rank[i] + 1);
      stages_ = std::max(stages_, trace.stage[i] + 1);
      microbatches_ = std::max(microbatches_, trace.mb_id[i] + 1);
      step_.try_emplace(trace.step[i], 0);
    }
    for (std::int64_t number = 0; auto& [step, place] : step_) {
      place = number++;
    }
    using Alike = std::tuple<TraceOp, std::int32_t, std::int32_t>;  // and stage and chunk
    std::map<Alike, std::vector<double>> durations;
    const auto each_pass = [&](auto f) {
      for (std::size_t i = 0; i < trace.size(); ++i) {
        if (is_compute(trace.optype[i]) && trace.mb_id[i] >= 0) {
          f(i, Alike{trace.optype[i], trace.stage[i], trace.mc[i]});
        }
      }
    };
    each_pass([&](std::size_t i, const Alike& alike) {
      durations[alike].push_back(trace.duration_s[i]);
    });
    for (auto& [alike, all] : durations) {
      std::ranges::sort(all);
    }
    each_pass([&](std::size_t i, const Alike& alike) {
      const std::vector<double>& all = durations.at(alike);
      const double median = all[all.size() / 2];
      if (median > 0) {
        factor_[{trace.optype[i], step_.at(trace.step[i]), trace.dp_rank[i], trace.stage[i],
                 std::max(0, trace.mc[i]), trace.mb_id[i]}] = trace.duration_s[i] / median;
      }
    });
  }

  bool empty() const { return factor_.empty(); }
  std::int32_t workers() const { return workers_; }
  std::int32_t stages() const { return stages_; }

  /// What the trace lacks is as fast as the median; microbatches and steps that it has too few of
  /// come again.
  double of(const ProgramOp& op, std::int64_t step, std::int32_t worker, std::int32_t stage) const {
    if ((op.type != OpType::kForward && op.type != OpType::kBackward) || op.microbatch < 0) {
      return 1;
    }
    const TraceOp type =
        op.type == OpType::kForward ? TraceOp::kForwardCompute : TraceOp::kBackwardCompute;
    const auto found =
        factor_.find({type, step % std::ssize(step_), worker % workers_, stage % stages_,
                      std::max<std::int32_t>(0, op.chunk), op.microbatch % microbatches_});
    return found == factor_.end() ? 1 : found->second;
  }

 private:
  std::int32_t workers_ = 1, stages_ = 1, microbatches_ = 1;
  std::map<std::int64_t, std::int64_t> step_;  // number in the trace: place
  /// Type, step, data-parallel rank, stage, chunk, microbatch.
  std::map<
      std::tuple<TraceOp, std::int64_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>,
      double>
      factor_;
};

/// Passes vary as those of a measured (or simulated) trace did: each rank takes the factors of the
/// worker at its data-parallel rank and stage, its step those of the how-manieth step it is.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  if (context.node_of_rank.empty()) {
    throw spec.error("the analytic engine has no microbatches").hint("use --engine flow");
  }
  const MeasuredFactors measured = [&] {
    try {
      return MeasuredFactors(read_trace(spec.value(0)));
    } catch (Error& error) {
      throw std::move(error).field("--straggler " + spec.text());
    }
  }();
  if (measured.empty()) {
    throw spec.error(0, "the trace has no forward or backward passes of a microbatch");
  }
  if (spec.timed()) {
    throw spec.error("trace has no FROM: it is there all the time");
  }
  struct Worker {
    bool chosen = false;
    std::int32_t dp = 0, stage = 0;
  };
  std::vector<Worker> workers(static_cast<std::size_t>(context.ranks()));
  for (const std::int32_t rank : spec.set(1, context.ranks(), "rank")) {
    workers[static_cast<std::size_t>(rank)] = {true, context.place(GroupKind::kDp, rank),
                                               context.place(GroupKind::kPp, rank)};
  }
  std::vector<std::uint64_t> alike;
  alike.reserve(workers.size());
  for (const Worker& worker : workers) {
    alike.push_back(!worker.chosen
                        ? 0
                        : 1 +
                              static_cast<std::uint64_t>(worker.dp % measured.workers()) *
                                  static_cast<std::uint64_t>(measured.stages()) +
                              static_cast<std::uint64_t>(worker.stage % measured.stages()));
  }
  plan.factor(
      [measured, workers, step = context.step](std::int32_t rank, std::int32_t,
                                               const ProgramOp& what) {
        const Worker& worker = workers[static_cast<std::size_t>(rank)];
        return worker.chosen ? measured.of(what, step, worker.dp, worker.stage) : 1.0;
      },
      alike);
}

}  // namespace

extern const StragglerModel kTraceStragglerModel;
const StragglerModel kTraceStragglerModel{
    "trace", "passes vary as those of a trace did, by data-parallel rank, stage and microbatch",
    kFields, apply};

}  // namespace lockstep
