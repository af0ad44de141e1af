#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/replay/lone_passes.h"
#include "simulator/replay/program.h"
#include "simulator/replay/replay.h"
#include "trace/job_meta.h"
#include "trace/trace.h"
#include "workloads/workload.h"

namespace lockstep {

/// Which workers of a stage and data-parallel rank are recorded.
enum class TraceWorkers {
  kAll,
  kFirst,  ///< of the tensor- and context-parallel groups, as the original tools have it
};

/// Records a simulated step in the form of what-if traces (specification of StragglerAnalysis), one
/// row for each pass, message, bucket and piece of the step's end.
///
///   forward-, backward-compute  from the pass's first operation to its last, transfers with
///                               tensor-, context- and expert-parallel ranks included. With all
///                               workers recorded, and more than one a stage and data-parallel rank
///                               or expert-parallel groups: as long as the worker itself computes
///   …-tp-comm                   then, what is left of the pass: those transfers, and waiting.
///                               Where parameters are gathered within passes all have it, and begin
///                               when they wait for the first parameters: behind the sums of
///                               gradients among replicas, where those hold them up
///   …-recv                      from the end of the same direction's computation before, when
///                               Megatron would post it, to its arrival
///   params-all-gather           one for each chunk: from the end of the one before, what comes
///                               before the chunk's first pass; gathered behind the optimizer, it
///                               comes before the step
///   grads-reduce-scatter        one for each chunk: what is left of it after the chunk's last
///                               pass, that of weights' gradients included. Where gradients are
///                               reduced in every microbatch (ZeRO-2) and all workers are recorded
///                               two for each chunk and microbatch, in the order of their stream:
///                               what is hidden beside the pass, and what is left of it behind
///   gc                          empty, where the last computation ends; of the first workers alone
///                               the weights' gradients behind the last pass
///   optimizer-clip-main-grad    empty, where the optimizer begins, if the workload has none
///   separate-grads-all-reduce   empty; there where gradients are reduced beside the last pass,
///                               which the original tells by such rows
///
/// Transfers with peers and reductions of gradients also say how long the worker would wait for
/// them if its peers were always where it is, and clipping how long it would take (lone_passes.h;
/// TraceExtra::alone_s). Where collectives slow computations down, or passes take turns, those say
/// how long they would compute then, beside collectives that wait for nobody, without what they
/// take turns with; and where collectives slow computations down, beside none of them
/// (TraceExtra::undisturbed_s).
///
/// Each row also has its bytes and communicator, and the worker's places in its tensor-, context-
/// and expert-parallel groups (TraceExtra).
///
/// Of a schedule that sends microbatches from both ends (DualPipe) the chunk of the whole model
/// (gmc) of chunk 1 is that of the stage as far from the other end; a last grads-reduce-scatter
/// without a chunk adds up the gradients of the two stages that hold the same layers.
///
/// Gradients of weights that split schedules work out in passes of their own have rows
/// weight-compute where all workers are recorded. The original tools know none: of the first
/// workers alone a pass that waits for those begins when that wait does. Two passes that take turns
/// begin when both have their messages, and each takes as long as both.
class StepTrace {
 public:
  /// `table` must outlive it.
  /// ERRORS: Error where the operations do not say what they are (workloads of SimAI's text, or
  /// written before they did).
  StepTrace(const OpTable& table, const Parallelism& parallel,
            TraceWorkers workers = TraceWorkers::kAll);

  bool records(std::int32_t rank) const { return worker_[static_cast<std::size_t>(rank)] >= 0; }
  /// Collectives slow computations down, so that passes may be longer for whom they wait; as
  /// ReplayOptions have it. Before anything is recorded.
  void interfere(const Interference& interference,
                 std::function<std::int32_t(std::int32_t rank, const ProgramOp&)> channels);
  void record(std::int32_t rank, std::int32_t index, const ProgramOp& op, const OpTiming& timing);
  /// How long a collective takes where the groups of these ranks enter theirs at once.
  using Together = std::function<Time(const ProgramOp&, std::span<const std::int32_t> ranks)>;
  /// Appends the rows of what was recorded; times count from the step's start. `together` is asked
  /// about collectives that some entered late, when a part had been moved: once for each kind, for
  /// all groups of a stage, up to kMostTogether ranks. Without it they take what they did then.
  void add_rows(std::int64_t step, Trace& trace, const Together& together = {}) const;
  static constexpr std::size_t kMostTogether = 512;
  JobMeta meta() const;

 private:
  struct Worker {
    std::int32_t rank = 0, dp_rank = 0, stage = 0;
    std::int32_t tp_rank = 0, cp_rank = 0, ep_rank = 0;
    const OpProgram* program = nullptr;
  };
  struct Entry {
    OpType type;
    std::int16_t chunk;
    std::int32_t microbatch;
    CommType comm;
    std::int32_t op;  // of the rank's program
    Time begin, end, moved;
    std::int32_t family;    // of a communication; -1: none, or one of ranks
    std::int32_t sequence;  // of a collective: how many its group had before; -1: of none
    std::int32_t taken;     // of a collective: what Interference::speed() asks for
    Time slowed;            // a computation, by collectives
    Bytes bytes;
  };
  /// "dp[3]": what of a family a rank is in.
  std::string group_of(std::int32_t family, std::int32_t rank) const;

  std::vector<std::int32_t> worker_;  ///< of each rank; -1: not recorded
  std::vector<Worker> workers_;
  std::vector<std::vector<Entry>> entries_;  ///< by worker
  struct Family {
    std::string name;
    std::vector<std::int32_t> group;  // of each rank; -1: none
    bool within_stages = true;        // no group has ranks of several
  };
  std::vector<Family> families_;
  /// When the first of its members enters a collective, and the last one is through with it.
  struct Meeting {
    Time first = Time::max(), end;
  };
  /// Those of a step, and what their kinds take where all enter at once.
  struct Meetings {
    std::vector<std::vector<std::vector<Meeting>>> all;  // by family, group, sequence
    std::map<std::tuple<std::int32_t, CommType, std::int64_t, std::int32_t>, Time> together;
    // by family, type, bytes and stage
  };
  // step_trace_rows.cc
  struct Collected;
  struct Placed;
  static Time optimized_by(std::span<const Entry> entries);
  static Time gathered_behind(std::span<const Entry> entries);
  Collected collect(std::span<const Entry> entries) const;
  void add_end(std::int32_t stage, Collected& all) const;
  using OfPass = std::pair<std::int32_t, std::int32_t>;  // chunk, microbatch
  static std::vector<std::int32_t> cut_scatters(Collected& all);
  static std::vector<Placed> reductions_of_passes(Collected& all, const LonePasses& alone);
  std::vector<Placed> in_order(const Collected& all) const;
  void cut_passes(std::vector<Placed>& rows) const;
  float alone_s(const Placed& row, const LonePasses& alone) const;

  // step_trace_alone.cc
  Meetings meetings() const;
  std::vector<std::int32_t> of_stage(const Family& family, std::int32_t stage) const;
  Time takes(const Worker& worker, const Entry& entry, const Together& together,
             Meetings& meetings) const;
  LonePasses lone_passes(std::size_t worker, const Together& together, Meetings& meetings) const;

  std::int32_t global_chunk(std::int32_t chunk, std::int32_t stage) const;
  std::int64_t gathers_in_passes(const OpTable& table) const;
  bool clips_in_replicas(const OpTable& table) const;
  bool passes_reduce(const OpTable& table) const;

  bool both_ways_ = false;     ///< microbatches enter at both ends
  bool side_by_side_ = false;  ///< some passes take turns
  bool splits_ = false;        ///< gradients of weights have passes of their own
  bool weight_rows_ = false;   ///< which have rows
  bool weights_meet_ = false;  ///< and transfers with peers
  bool pure_passes_ = false;   ///< rows of passes hold no transfers with peers
  Interference interference_;
  std::function<std::int32_t(std::int32_t rank, const ProgramOp&)> channels_;
  bool peers_ = false;                  ///< rows of transfers with peers are written
  std::int64_t gathers_in_passes_ = 0;  ///< see JobMeta
  bool passes_gather_ = false;          ///< parameters, whoever is recorded
  bool passes_reduce_ = false;          ///< rows of reductions are those of microbatches
  bool clips_in_replicas_ = false;      ///< see JobMeta
  std::int32_t dp_ = 1, stages_ = 1, tp_ = 1, cp_ = 1, chunks_ = 1;
};

}  // namespace lockstep
