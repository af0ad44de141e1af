#include "simulator/replay/step_records.h"

#include <cstddef>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/replay/critical_links.h"
#include "simulator/replay/memory_timeline.h"

namespace lockstep {
namespace {

/// The first rank of each program of the first job, ascending.
std::vector<std::int32_t> first_ranks(const StepPrograms& compiled) {
  std::vector<std::int32_t> firsts;
  std::vector<char> seen(compiled.work.programs.size(), 0);
  for (std::int32_t rank = 0; rank < compiled.jobs.front().ranks; ++rank) {
    char& known = seen[static_cast<std::size_t>(
        compiled.work.program_of_rank[static_cast<std::size_t>(rank)])];
    if (known == 0) {
      known = 1;
      firsts.push_back(rank);
    }
  }
  return firsts;
}

/// ERRORS: Error where the first job's work has not what the columns of a trace need.
StepTrace trace_of(const StepJob& job, bool first_workers) {
  const auto* table = std::get_if<OpTable>(&job.source->work);
  if (table == nullptr) {
    throw Error(
        "a table of layers has no microbatches and stages, which the columns of a trace need")
        .hint("a time line of this step can be written: .json.gz, .pftrace.gz or .csv.gz");
  }
  Parallelism parallel = job.source->parallel;
  parallel.gpus = job.ranks;
  return {*table, parallel, first_workers ? TraceWorkers::kFirst : TraceWorkers::kAll};
}

}  // namespace

StepRecords::StepRecords(const StepPrograms& compiled, const OpNames& names,
                         const StepOptions& options)
    : compiled_(compiled), names_(names), options_(options) {
  if (options.timeline != nullptr) {
    timeline_.emplace(
        compiled.work, [&names](std::int32_t rank, std::int32_t op) { return names(rank, op); },
        [&names](std::int32_t rank, std::int32_t op) { return names.track(rank, op); });
  }
  if (options.trace != nullptr) {
    if (compiled.jobs.size() > 1) {
      throw Error(fmt::format("a trace for 'lockstep whatif' is of one job, but {} run",
                              compiled.jobs.size()))
          .field("--trace")
          .hint("a time line (.json.gz, .pftrace.gz) shows them all");
    }
    trace_ = trace_of(compiled.jobs.front(), options.trace_first_workers);
    if (options.meta != nullptr) {
      *options.meta = trace_->meta();
    }
  }
  if (options.memory) {
    holders_ = first_ranks(compiled);
    held_.resize(static_cast<std::size_t>(compiled.work.ranks()));
    for (const std::int32_t rank : holders_) {
      held_[static_cast<std::size_t>(rank)].resize(compiled.work.program(rank).ops().size());
    }
  }
}

void StepRecords::listen(ReplayOptions& replay, const StepFold* final_fold) {
  if (explains()) {
    kept_.emplace(compiled_.work, final_fold);
  }
  if (!timeline_ && !trace_ && !kept_ && holders_.empty()) {
    return;
  }
  if (trace_) {
    trace_->interfere(replay.interference, replay.channels);
  }
  replay.traced = [this](std::int32_t rank) {
    return kept(rank) || held(rank) || drawn(rank) || in_trace(rank);
  };
  replay.on_op = [this](std::int32_t rank, std::int32_t op, const OpTiming& timing) {
    record(rank, op, timing);
  };
}

void StepRecords::record(std::int32_t rank, std::int32_t op, const OpTiming& timing) {
  if (kept(rank)) {
    kept_->record(rank, op, timing);
  }
  if (held(rank)) {
    held_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(op)] = timing;
  }
  if (drawn(rank)) {
    timeline_->record(rank, op, timing);
  }
  if (in_trace(rank)) {
    trace_->record(rank, op, compiled_.work.program(rank).ops()[static_cast<std::size_t>(op)],
                   timing);
  }
}

void StepRecords::write(const StepTrace::Together& together) {
  if (trace_) {
    trace_->add_rows(options_.step, *options_.trace, together);
  }
  if (timeline_) {
    *options_.timeline = timeline_->take();
  }
}

void StepRecords::explain(const Topology& topology, const std::vector<NodeId>& nodes,
                          const ScheduleSource& schedules, StepResult& result) const {
  if (!kept_) {
    return;
  }
  std::optional<CriticalPath> path = kept_->critical();
  if (options_.explain && !path) {
    result.warnings.push_back("too many operations to keep: no critical path");
  }
  if (options_.detail != nullptr) {
    *options_.detail = kept_->detail(
        [this](std::int32_t rank, std::int32_t op) { return names_(rank, op); },
        [this](std::int32_t rank, std::int32_t op) { return names_.track(rank, op); }, path);
  }
  if (options_.explain) {
    result.critical = std::move(path);
  }
  if (result.critical && options_.routes) {
    result.critical->by_link = critical_links(compiled_.work, nodes, topology, *options_.routes,
                                              schedules, *result.critical);
  }
}

std::vector<MemoryTimeline> StepRecords::memory(
    const std::function<std::int32_t(std::int32_t rank)>& stage) const {
  std::vector<MemoryTimeline> timelines;
  for (const std::int32_t rank : holders_) {
    timelines.push_back(memory_timeline(compiled_.work.program(rank),
                                        held_[static_cast<std::size_t>(rank)],
                                        options_.memory(stage(rank))));
    timelines.back().rank = rank;
    timelines.back().stage = stage(rank);
  }
  return timelines;
}

}  // namespace lockstep
