#include "profiler/run/run_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

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

/// SimAI's files say 0 or 1 ns for "not known".
bool is_known(Time time) { return time > Time::ns(1); }

ComputeCall compute_call(const RunChoice& choice, Time time) {
  return choice.compute == RunCompute::kGemm ? product_lasting(time, choice.flops)
                                             : ComputeCall{0, 0, 0, time};
}

void add_compute(RunPlan& plan, const RunChoice& choice, const std::string& name, Time time) {
  if (!is_known(time)) {
    return;
  }
  RunItem item;
  item.name = item.stage = name;
  item.compute = compute_call(choice, time);
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

/// Where each rank is in its group of a family; -1: in none.
struct Place {
  std::int32_t group = -1, index = -1;
};

/// The ranks of an OpTable: their communicators, and what becomes of one rank's operations.
class OpPlan {
 public:
  OpPlan(const OpTable& table, const RunChoice& choice, RunPlan& plan)
      : table_(table), choice_(choice), plan_(plan) {}

  void make() {
    add_groups();
    add_pairs();
    for (const OpProgram& program : table_.programs) {
      for (const RankRange& range : program.ranks) {
        for_each_rank(range,
                      [&](std::int32_t rank) { own_ = rank == choice_.rank ? &program : own_; });
      }
    }
    if (own_ == nullptr) {
      return;  // this rank does nothing
    }
    streams_.assign(own_->streams.size(), -1);
    last_.resize(own_->streams.size());
    plan_.streams.clear();
    for (const Op& op : own_->ops) {
      add_op(op);
    }
    if (plan_.streams.empty()) {
      plan_.streams = {"all"};  // of the end of the iteration
    }
  }

 private:
  /// A message's way: of which family (-1: of none), from whom, to whom.
  using Pair = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

  /// All groups on all ranks in one order: making a communicator takes everybody.
  void add_groups() {
    for (const GroupFamily& family : table_.groups) {
      std::vector<Place>& places = places_.emplace_back(static_cast<std::size_t>(plan_.world));
      own_groups_.push_back(-1);
      for (std::size_t group = 0; group < family.members.size(); ++group) {
        const std::vector<std::int32_t>& members = family.members[group];
        for (std::size_t i = 0; i < members.size(); ++i) {
          places[static_cast<std::size_t>(known(members[i]))] = {static_cast<std::int32_t>(group),
                                                                 static_cast<std::int32_t>(i)};
          own_groups_.back() = members[i] == choice_.rank ? static_cast<int>(plan_.groups.size())
                                                          : own_groups_.back();
        }
        plan_.groups.push_back({family.name, members});
      }
    }
  }

  /// The rank. ERRORS: it is not of the world.
  std::int32_t known(std::int32_t rank) const {
    if (rank >= choice_.world) {
      throw Error(
          fmt::format("the workload has a rank {}, and there are {} ranks", rank, choice_.world))
          .field("--world");
    }
    return rank;
  }

  /// The other rank of a rank's message (Op).
  std::int32_t peer_of(const Op& op, std::int32_t rank) const {
    if (op.group < 0) {
      return known(op.peer);
    }
    const auto family = static_cast<std::size_t>(op.group);
    const Place place = places_[family][static_cast<std::size_t>(known(rank))];
    const auto& members = table_.groups[family].members.at(static_cast<std::size_t>(place.group));
    const auto size = static_cast<std::int32_t>(members.size());
    return members[static_cast<std::size_t>(((place.index + op.peer) % size + size) % size)];
  }

  static Pair pair_of(const Op& op, std::int32_t rank, std::int32_t peer) {
    return op.send ? Pair(op.group, rank, peer) : Pair(op.group, peer, rank);
  }

  /// A communicator for each pair of ranks and direction of messages.
  void add_pairs() {
    for (const OpProgram& program : table_.programs) {
      std::map<std::tuple<std::int32_t, std::int32_t, bool>, const Op*> kinds;
      for (const Op& op : program.ops) {
        if (op.comm == CommType::kSendRecv) {
          kinds.emplace(std::tuple(op.group, op.peer, op.send), &op);
        }
      }
      for (const RankRange& range : program.ranks) {
        for_each_rank(range, [&](std::int32_t rank) {
          for (const auto& [kind, op] : kinds) {
            pairs_.emplace(pair_of(*op, rank, peer_of(*op, rank)), -1);
          }
        });
      }
    }
    for (auto& [pair, group] : pairs_) {
      const auto& [family, from, to] = pair;
      group = static_cast<int>(plan_.groups.size());
      plan_.groups.push_back(
          {family < 0 ? "pair" : table_.groups[static_cast<std::size_t>(family)].name,
           {from, to},
           true});
    }
  }

  /// The operation as an item, or none where there is nothing to do for it.
  std::optional<RunItem> item_of(const Op& op) const {
    RunItem item;
    item.name = item.stage = op.name;
    item.comm = op.comm;
    item.bytes = op.bytes.count();
    if (op.comm == CommType::kNone) {
      item.compute = compute_call(choice_, op.compute);
      return is_known(op.compute) ? std::optional(item) : std::nullopt;
    }
    if (op.comm == CommType::kSendRecv) {
      item.send = op.send;
      item.peer = peer_of(op, choice_.rank);
      item.group = pairs_.at(pair_of(op, choice_.rank, item.peer));
      return item.peer != choice_.rank ? std::optional(item) : std::nullopt;
    }
    item.group = own_groups_[static_cast<std::size_t>(op.group)];
    const bool alone =
        item.group < 0 ||
        (choice_.world > 1 && plan_.groups[static_cast<std::size_t>(item.group)].ranks.size() < 2);
    return alone ? std::nullopt : std::optional(item);
  }

  void add_op(const Op& op) {
    // What ends with the operations before: those that nothing is done for stand for their own.
    std::set<std::int32_t> before;
    for (const std::int32_t other : op.after) {
      const auto& ends = ends_[static_cast<std::size_t>(other)];
      before.insert(ends.begin(), ends.end());
    }
    std::vector<std::int32_t>& last = last_[static_cast<std::size_t>(op.stream)];
    before.insert(last.begin(), last.end());
    if (std::optional<RunItem> item = item_of(op)) {
      int& stream = streams_[static_cast<std::size_t>(op.stream)];
      if (stream < 0) {
        stream = static_cast<int>(plan_.streams.size());
        plan_.streams.push_back(own_->streams[static_cast<std::size_t>(op.stream)]);
      }
      item->stream = stream;
      for (const std::int32_t other : before) {
        if (plan_.items[static_cast<std::size_t>(other)].stream != stream) {
          item->after.push_back(other);
        }
      }
      last = {static_cast<std::int32_t>(plan_.items.size())};
      add(plan_, *std::move(item));
    } else {
      last.assign(before.begin(), before.end());
    }
    ends_.push_back(last);
  }

  const OpTable& table_;
  const RunChoice& choice_;
  RunPlan& plan_;
  const OpProgram* own_ = nullptr;
  std::vector<std::vector<Place>> places_;  ///< by family and rank
  std::vector<int> own_groups_;             ///< by family; -1: in none
  std::map<Pair, int> pairs_;
  std::vector<int> streams_;                     ///< by the program's; -1: nothing on it yet
  std::vector<std::vector<std::int32_t>> last_;  ///< by the program's: the items it waits for
  std::vector<std::vector<std::int32_t>> ends_;  ///< by operation: the items that stand for it
};

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
    OpPlan(std::get<OpTable>(job.work), choice, plan).make();
  }
  plan.items.push_back(end_of_iteration());
  return plan;
}

}  // namespace lockstep
