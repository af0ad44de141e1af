#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "simulator/replay/straggler_plan.h"
#include "trace/read_trace.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {{"file", "", "a trace in what-if's columns (.parquet, .csv)"},
                                      {"gpus", "*", "ranks"}};

/// Where a worker is: its places among the data-, context- and tensor-parallel ranks, its stage.
struct Place {
  std::int32_t dp = 0, stage = 0, cp = 0, tp = 0;
  auto operator<=>(const Place&) const = default;
};

/// How long the passes of a trace took, against the median of those of the same kind, stage and
/// model chunk: what is left is who is slow and when, not what a pass costs here.
class MeasuredFactors {
 public:
  explicit MeasuredFactors(const Trace& trace) {
    for (std::size_t i = 0; i < trace.size(); ++i) {
      const Place place = place_of(trace, i);
      most_ = {std::max(most_.dp, place.dp + 1), std::max(most_.stage, place.stage + 1),
               std::max(most_.cp, place.cp + 1), std::max(most_.tp, place.tp + 1)};
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
        factor_[{trace.optype[i], step_.at(trace.step[i]), place_of(trace, i),
                 std::max(0, trace.mc[i]), trace.mb_id[i]}] = trace.duration_s[i] / median;
      }
    });
  }

  bool empty() const { return factor_.empty(); }

  /// The worker of the trace that stands for one at `place`: where the trace has too few they come
  /// again, and where it has one for all tensor- or context-parallel ranks it stands for each.
  Place worker_for(const Place& place) const {
    return {place.dp % most_.dp, place.stage % most_.stage, place.cp % most_.cp,
            place.tp % most_.tp};
  }
  /// A number of its own for each worker of the trace, from 0.
  std::uint64_t number_of(const Place& worker) const {
    std::int64_t number = worker.dp;
    number = number * most_.stage + worker.stage;
    number = number * most_.cp + worker.cp;
    return static_cast<std::uint64_t>(number * most_.tp + worker.tp);
  }

  /// What the trace lacks is as fast as the median; microbatches and steps that it has too few of
  /// come again.
  double of(const ProgramOp& op, std::int64_t step, const Place& worker) const {
    const bool weights = op.type == OpType::kWeightGradient;
    if ((op.type != OpType::kForward && op.type != OpType::kBackward && !weights) ||
        op.microbatch < 0) {
      return 1;
    }
    const auto find = [&](TraceOp type) {
      return factor_.find({type, step % std::ssize(step_), worker,
                           std::max<std::int32_t>(0, op.chunk), op.microbatch % microbatches_});
    };
    auto found = find(weights                       ? TraceOp::kWeightCompute
                      : op.type == OpType::kForward ? TraceOp::kForwardCompute
                                                    : TraceOp::kBackwardCompute);
    if (weights && found == factor_.end()) {  // a trace of whole backward passes
      found = find(TraceOp::kBackwardCompute);
    }
    return found == factor_.end() ? 1 : found->second;
  }

 private:
  static Place place_of(const Trace& trace, std::size_t row) {
    const auto at = [&](const std::vector<std::int32_t>& column) {
      return column.empty() ? 0 : column[row];
    };
    return {trace.dp_rank[row], trace.stage[row], at(trace.extra.cp_rank), at(trace.extra.tp_rank)};
  }

  Place most_{1, 1, 1, 1};
  std::int32_t microbatches_ = 1;
  std::map<std::int64_t, std::int64_t> step_;  // number in the trace: place
  /// Type, step, worker, chunk, microbatch.
  std::map<std::tuple<TraceOp, std::int64_t, Place, std::int32_t, std::int32_t>, double> factor_;
};

/// Passes vary as those of a measured (or simulated) trace did: each rank takes the factors of the
/// worker at its place (data-, context- and tensor-parallel rank, stage), its step those of the
/// how-manieth step it is.
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
  std::vector<std::optional<Place>> workers(static_cast<std::size_t>(context.ranks()));
  std::vector<std::uint64_t> alike(workers.size(), 0);
  for (const std::int32_t rank : spec.set(1, context.ranks(), "rank")) {
    const Place worker = measured.worker_for(
        {context.data_parallel_rank(rank), context.place(GroupKind::kPp, rank),
         context.place(GroupKind::kCp, rank), context.place(GroupKind::kTp, rank)});
    workers[static_cast<std::size_t>(rank)] = worker;
    alike[static_cast<std::size_t>(rank)] = 1 + measured.number_of(worker);
  }
  plan.factor(
      [measured, workers, step = context.step](std::int32_t rank, std::int32_t,
                                               const ProgramOp& what) {
        const std::optional<Place>& worker = workers[static_cast<std::size_t>(rank)];
        return worker ? measured.of(what, step, *worker) : 1.0;
      },
      alike);
}

}  // namespace

extern const StragglerModel kTraceStragglerModel;
const StragglerModel kTraceStragglerModel{
    "trace", "passes vary as those of a trace did, by data-parallel rank, stage and microbatch",
    kFields, apply};

}  // namespace lockstep
