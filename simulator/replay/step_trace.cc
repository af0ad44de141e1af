#include "simulator/replay/step_trace.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

/// Each rank's place in its group of a family, 0 where there is no such family; and the size.
std::vector<std::int32_t> places(const OpTable& table, std::string_view name, std::int64_t ranks,
                                 std::int32_t& size) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(ranks), 0);
  size = 1;
  for (const GroupFamily& family : table.groups) {
    if (family.name != name) {
      continue;
    }
    for (const std::vector<std::int32_t>& group : family.members) {
      size = std::max(size, static_cast<std::int32_t>(group.size()));
      for (std::size_t i = 0; i < group.size(); ++i) {
        result[static_cast<std::size_t>(group[i])] = static_cast<std::int32_t>(i);
      }
    }
  }
  return result;
}

/// Each rank's first of its group of a family, itself where there is no such family.
std::vector<std::int32_t> firsts(const OpTable& table, std::string_view name, std::int64_t ranks) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(ranks));
  std::iota(result.begin(), result.end(), 0);
  for (const GroupFamily& family : table.groups) {
    for (const std::vector<std::int32_t>& group : family.members) {
      for (const std::int32_t rank : group) {
        if (family.name == name) {
          result[static_cast<std::size_t>(rank)] = group.front();
        }
      }
    }
  }
  return result;
}

}  // namespace

namespace {

/// Whether computations of one pass stand between those of another.
bool takes_turns(const OpProgram& program) {
  using Pass = std::tuple<OpType, std::int32_t, std::int32_t>;
  std::set<Pass> begun;
  Pass current{OpType::kOther, -1, -1};
  for (const Op& op : program.ops) {
    const Pass pass{op.type, op.chunk, op.microbatch};
    if (op.comm != CommType::kNone || op.type == OpType::kOther || pass == current) {
      continue;
    }
    if (!begun.insert(pass).second) {
      return true;
    }
    current = pass;
  }
  return false;
}

}  // namespace

StepTrace::StepTrace(const OpTable& table, const Parallelism& parallel, TraceWorkers recorded)
    : worker_(static_cast<std::size_t>(parallel.gpus), -1) {
  bool known = false;
  for (const OpProgram& program : table.programs) {
    side_by_side_ = side_by_side_ || takes_turns(program);
    for (const Op& op : program.ops) {
      both_ways_ = both_ways_ || (op.type == OpType::kForwardSend && op.peer == -1);
      known = known || op.type != OpType::kOther;
      chunks_ = std::max(chunks_, op.chunk + 1);
      passes_gather_ =
          passes_gather_ || (op.type == OpType::kGatherParameters && op.microbatch >= 0);
      const bool weights = op.type == OpType::kWeightGradient;
      splits_ = splits_ || weights;
      weights_meet_ = weights_meet_ || (weights && op.comm != CommType::kNone);
    }
  }
  side_by_side_ = side_by_side_ || both_ways_;
  if (!known) {
    throw Error("the workload's operations have no types, which the columns of a trace need")
        .hint("a time line of this step can be written: .json.gz, .pftrace.gz or .csv.gz");
  }
  const std::vector<std::int32_t> tp = places(table, "tp", parallel.gpus, tp_);
  const std::vector<std::int32_t> cp = places(table, "cp", parallel.gpus, cp_);
  std::int32_t experts = 1;
  const std::vector<std::int32_t> ep = places(table, "ep", parallel.gpus, experts);
  const std::vector<std::int32_t> stage = places(table, "pp", parallel.gpus, stages_);
  const std::vector<std::int32_t> tp_first = firsts(table, "tp", parallel.gpus);
  const std::vector<std::int32_t> cp_first = firsts(table, "cp", parallel.gpus);
  const bool all = recorded == TraceWorkers::kAll;
  weight_rows_ = splits_ && all;
  // The first of the groups have the dp_ranks in their order, the others that of their first.
  std::vector<std::int32_t> next(static_cast<std::size_t>(stages_), 0);
  std::vector<std::int32_t> dp_rank(worker_.size(), 0);
  for (std::size_t rank = 0; rank < worker_.size(); ++rank) {
    if (tp[rank] == 0 && cp[rank] == 0) {
      dp_rank[rank] = next[static_cast<std::size_t>(stage[rank])]++;
    }
  }
  for (std::size_t rank = 0; rank < worker_.size(); ++rank) {
    if (all || (tp[rank] == 0 && cp[rank] == 0)) {
      const auto first =
          static_cast<std::size_t>(cp_first[static_cast<std::size_t>(tp_first[rank])]);
      worker_[rank] = static_cast<std::int32_t>(workers_.size());
      workers_.push_back({static_cast<std::int32_t>(rank), dp_rank[first], stage[rank], tp[rank],
                          cp[rank], ep[rank]});
    }
  }
  dp_ = next.front();
  clips_in_replicas_ = both_ways_ && clips_in_replicas(table);
  gathers_in_passes_ = all ? gathers_in_passes(table) : 0;
  passes_reduce_ = all && !passes_gather_ && passes_reduce(table);
  passes_gather_ = passes_gather_ && (gathers_in_passes_ > 0 || !all);
  peers_ = all && (tp_ * cp_ > 1 || experts > 1 || gathers_in_passes_ > 0);
  pure_passes_ = peers_ || tp_ * cp_ * experts == 1;
  entries_.resize(workers_.size());
  std::vector<const OpProgram*> programs(worker_.size(), nullptr);
  for (const OpProgram& program : table.programs) {
    for (const RankRange& range : program.ranks) {
      for (std::int32_t rank = range.first; rank < range.end; rank += range.stride) {
        programs[static_cast<std::size_t>(rank)] = &program;
      }
    }
  }
  for (Worker& worker : workers_) {
    worker.program = programs[static_cast<std::size_t>(worker.rank)];
  }
  for (const GroupFamily& family : table.groups) {
    Family& last = families_.emplace_back();
    last.name = family.name;
    last.group.assign(worker_.size(), -1);
    for (std::size_t group = 0; group < family.members.size(); ++group) {
      for (const std::int32_t rank : family.members[group]) {
        last.group[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(group);
        last.within_stages = last.within_stages &&
                             stage[static_cast<std::size_t>(rank)] ==
                                 stage[static_cast<std::size_t>(family.members[group].front())];
      }
    }
  }
}

/// See JobMeta: by the largest groups that gather; 0 where those are not dp_ranks in a row.
std::int64_t StepTrace::gathers_in_passes(const OpTable& table) const {
  const GroupFamily* largest = nullptr;
  for (const OpProgram& program : table.programs) {
    for (const Op& op : program.ops) {
      if (op.type == OpType::kGatherParameters && op.microbatch >= 0 && op.group >= 0) {
        const GroupFamily& family = table.groups[static_cast<std::size_t>(op.group)];
        largest =
            largest == nullptr || family.members.front().size() > largest->members.front().size()
                ? &family
                : largest;
      }
    }
  }
  if (largest == nullptr) {
    return 0;
  }
  const std::int64_t ranks = std::ssize(largest->members.front()) / cp_;
  const auto block = [&](std::int32_t rank) {
    const std::int32_t worker = worker_[static_cast<std::size_t>(rank)];
    return workers_[static_cast<std::size_t>(worker)].dp_rank / ranks;
  };
  const bool in_a_row =
      ranks > 0 &&
      std::ranges::all_of(largest->members, [&](const std::vector<std::int32_t>& group) {
        return std::ranges::all_of(
            group, [&](std::int32_t rank) { return block(rank) == block(group.front()); });
      });
  return in_a_row ? ranks : 0;
}

/// Whether all that clip together, of those recorded, have the same dp_rank and cp_rank.
bool StepTrace::clips_in_replicas(const OpTable& table) const {
  std::set<std::int32_t> families;
  for (const OpProgram& program : table.programs) {
    for (const Op& op : program.ops) {
      if (op.type == OpType::kClip && op.group >= 0) {
        families.insert(op.group);
      }
    }
  }
  const auto is_in_one = [&](const std::vector<std::int32_t>& group) {
    std::set<std::pair<std::int32_t, std::int32_t>> replicas;
    for (const std::int32_t rank : group) {
      if (records(rank)) {
        const Worker& worker =
            workers_[static_cast<std::size_t>(worker_[static_cast<std::size_t>(rank)])];
        replicas.emplace(worker.dp_rank, worker.cp_rank);
      }
    }
    return replicas.size() <= 1;
  };
  return !families.empty() && std::ranges::all_of(families, [&](std::int32_t family) {
    return std::ranges::all_of(table.groups[static_cast<std::size_t>(family)].members, is_in_one);
  });
}

/// Whether the gradients of a chunk are reduced in several microbatches.
bool StepTrace::passes_reduce(const OpTable& table) const {
  for (const OpProgram& program : table.programs) {
    std::map<std::int32_t, std::int32_t> microbatches;  // the first, by chunk
    for (const Op& op : program.ops) {
      if (op.type == OpType::kReduceGradients && op.chunk >= 0 && op.microbatch >= 0 &&
          microbatches.try_emplace(op.chunk, op.microbatch).first->second != op.microbatch) {
        return true;
      }
    }
  }
  return false;
}

void StepTrace::interfere(
    const Interference& interference,
    std::function<std::int32_t(std::int32_t rank, const ProgramOp&)> channels) {
  interference_ = interference;
  channels_ = std::move(channels);
}

void StepTrace::record(std::int32_t rank, std::int32_t index, const ProgramOp& op,
                       const OpTiming& timing) {
  if (op.type != OpType::kOther) {
    const bool meets = op.comm != CommType::kNone && op.comm != CommType::kSendRecv;
    const std::int32_t taken = !meets || !interference_.any()   ? 0
                               : interference_.measured.empty() ? 1
                                                                : channels_(rank, op);
    entries_[static_cast<std::size_t>(worker_[static_cast<std::size_t>(rank)])].push_back(
        {op.type, op.chunk, op.microbatch, op.comm, index, timing.begin, timing.end, timing.moved,
         op.family, meets ? op.sequence : -1, taken, timing.slowed, op.bytes});
  }
}

std::int32_t StepTrace::global_chunk(std::int32_t chunk, std::int32_t stage) const {
  if (both_ways_) {
    return chunk == 0 ? stage : stages_ - 1 - stage;
  }
  return chunk * stages_ + stage;
}

std::string StepTrace::group_of(std::int32_t family, std::int32_t rank) const {
  if (family < 0) {
    return {};
  }
  const Family& of = families_[static_cast<std::size_t>(family)];
  return fmt::format("{}[{}]", of.name, of.group[static_cast<std::size_t>(rank)]);
}

JobMeta StepTrace::meta() const {
  JobMeta meta;
  meta.trial_name = "simulated";
  meta.dp_size = dp_;
  meta.pp_size = stages_;
  meta.tp_size = tp_;
  meta.dsp_size = cp_;
  meta.vpp_size = chunks_;
  meta.gathers_in_passes = gathers_in_passes_;
  meta.gradients_behind_gc = splits_ && !weight_rows_ ? 1 : 0;
  meta.clips_in_replicas = clips_in_replicas_ ? 1 : 0;
  meta.world_size = static_cast<std::int64_t>(dp_) * stages_ * tp_ * cp_;
  return meta;
}

}  // namespace lockstep
