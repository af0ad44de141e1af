#include "simulator/replay/replay_run.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/progress.h"
#include "simulator/replay/collective_run.h"
#include "simulator/replay/formula_runs.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/recalled_runs.h"

namespace lockstep {

ReplayRun::ReplayRun(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                     const Topology& topology, NetworkEngine& network,
                     const ScheduleSource& schedules, const ReplayOptions& options)
    : ReplayRun(work, options) {
  LOCKSTEP_CHECK(node_of_rank.size() == index(work.ranks()), "every rank has a node");
  const auto finished = [this](std::int32_t rank, std::int32_t op, Time moved) {
    communicated(rank, op, moved);
  };
  if (options.recall) {
    auto runs = std::make_unique<RecalledRuns>(work, node_of_rank, topology, network, schedules,
                                               options, finished);
    recalled_ = runs.get();
    runs_ = std::move(runs);
  } else {
    runs_ = std::make_unique<CollectiveRuns>(work, node_of_rank, topology, network, schedules,
                                             options, finished);
  }
  simulated_.resize(index(work.ranks()));
  std::iota(simulated_.begin(), simulated_.end(), 0);
  stands_for_ = simulated_;
  prepare();
}

ReplayRun::ReplayRun(const RankPrograms& work, const StepFolder& folder,
                     std::shared_ptr<StepFold> first, const ReplayOptions& options)
    : ReplayRun(work, options) {
  folder_ = &folder;
  folds_.push_back(std::move(first));
  if (options.changes.empty() && !options.traced && !options.on_op && !interferes() &&
      (!options.duration || !options.steady_speeds.empty())) {
    std::shared_ptr<const Stretches> none;
    std::shared_ptr<const Stretches>& known =
        folder.kept() != nullptr ? folder.kept()->stretches : none;
    if (known == nullptr) {
      known = std::make_shared<Stretches>(work);
    }
    stretches_ = known->empty() ? nullptr : known;
  }
  fold_runs();
  prepare();
  watch_ranks();
}

ReplayRun::ReplayRun(const RankPrograms& work, const CommFormula& formula,
                     const ReplayOptions& options)
    : ReplayRun(work, options) {
  std::vector<std::int32_t> first(work.programs.size(), -1);
  for (std::int32_t rank = 0; rank < work.ranks(); ++rank) {
    std::int32_t& like = first[index(work.program_of_rank[index(rank)])];
    if (like < 0 || options.duration) {
      simulated_.push_back(rank);
      like = rank;
    }
    stands_for_.push_back(like);
  }
  runs_ = std::make_unique<FormulaRuns>(
      work, stands_for_, formula,
      [this](std::int32_t rank, std::int32_t op, Time moved) { communicated(rank, op, moved); });
  prepare();
}

ReplayResult ReplayRun::run() {
  check_limit(total_ops_);
  Progress progress("simulating", options_.show_progress ? total_ops_ : 0);
  for (const std::int32_t r : simulated_) {
    begin(r);
  }
  for (;;) {
    ++moments_;
    check_work();
    if (!later_.empty() && (own_.empty() || own_.top().when > now_)) {
      now_ = runs_->advance(now_);
      if (!runs_->happened()) {
        next_phase();
      }
      runs_->dispatch(now_);
      work_off();
      continue;
    }
    const bool changes = change_ < options_.changes.size() && done_ops_ < total_ops_;
    const Time next_change = changes ? options_.changes[change_].when : Time::max();
    now_ = runs_->advance(std::min(own_.empty() ? Time::max() : own_.top().when, next_change));
    if (!runs_->happened() && own_.empty() && !changes) {
      if (under_way_ == 0) {
        break;
      }
      simulate_stretches();  // some wait for ranks that never come
      continue;
    }
    if (changes && now_ == next_change) {
      change_network();
    }
    runs_->dispatch(now_);
    work_off();
    if ((!came_round_.empty() || wanted_ > 0) && later_.empty()) {
      look_for_repetition();
    }
    progress.update(done_ops_);
  }
  if (done_ops_ != total_ops_) {
    stuck();
  }
  ReplayResult result;
  for (const std::int32_t r : stands_for_) {
    result.rank_end.push_back(at(r).end);
    result.end = std::max(result.end, at(r).end);
  }
  if (!ranks_.empty()) {
    result.first_rank = std::move(ranks_[0].timing);
  }
  result.transfers = runs_->transfers();
  result.work = work();
  result.most_blocks = options_.interference.measured.empty() ? 0 : most_beside_;
  if (recalled_ != nullptr) {
    result.error = recalled_->error();
    result.recalled = recalled_->recalled();
    result.recalled_bytes = recalled_->recalled_bytes();
  }
  return result;
}

std::vector<std::vector<double>> ReplayRun::carried_bits() {
  carried_.push_back(folded_->carried_bits());
  return std::move(carried_);
}

void ReplayRun::check_limit(std::int64_t ops) const {
  const std::int64_t most = options_.limits.most_ops;
  if (most > 0 && ops > most) {
    throw ReplayGivenUp(
        fmt::format("{} operations of {} ranks that differ are too many to replay: at most {}", ops,
                    simulated_.size(), most),
        0);
  }
}

void ReplayRun::check_work() const {
  const ReplayLimits& limits = options_.limits;
  const std::int64_t spent = std::max(work(), folded_moments_);
  if (limits.stop && limits.stop()) {
    throw ReplayGivenUp(fmt::format("the replay was ended at {}", to_text(now_)), spent);
  }
  if (limits.most_work > 0 && spent > limits.most_work) {
    throw ReplayGivenUp(
        fmt::format("the replay took too long: it was given up at {}", to_text(now_)), spent);
  }
  if (now_ > limits.latest) {  // what it took as of one that ends
    throw ReplayGivenUp(fmt::format("the step takes longer than {}", to_text(limits.latest)),
                        work(), true);
  }
}

std::int64_t ReplayRun::work() const {
  constexpr std::int64_t kRank = 256, kMoment = 2, kFoldedMoment = 30;
  const std::int64_t moments = moments_ + runs_->passed();
  return kRank * work_.ranks() + moments * (folded_ == nullptr ? kMoment : kFoldedMoment);
}

/// Ends all that ends now.
void ReplayRun::work_off() {
  while (!own_.empty() && own_.top().when == now_) {
    const OwnEvent event = own_.top();
    own_.pop();
    if (event.op < 0) {
      start(event.rank, -1 - event.op);
    } else if (beside_of_ != nullptr && event.op == beside_of_->stretch->last) {
      finish_[beside_of_->place_of(event.rank)] = now_;
    } else if (!withdrawn_.empty() && withdrawn_.erase(event.order) > 0) {
      continue;
    } else if (event.op >= OwnEvent::kDue) {
      exits_due(event.rank, event.op - OwnEvent::kDue);
    } else if (event.op >= OwnEvent::kExit) {
      exit_ready(event.rank, event.op - OwnEvent::kExit);
    } else if (at(event.rank).told >= 0 &&
               event.op == stretch_runs_[index(at(event.rank).told)].stretch->last) {
      end_stretch(event.rank);
    } else if (!out_of_date(event, at(event.rank))) {
      ended(event.rank, event.op);
    }
  }
}

void ReplayRun::prepare() {
  ranks_.resize(static_cast<std::size_t>(work_.ranks()));
  std::vector<char> hosts;  // by program
  if (folder_ != nullptr) {
    hosts = folder_->place().facts->hosts;
  } else {
    std::ranges::transform(work_.programs, std::back_inserter(hosts), launches);
  }
  for (const std::int32_t r : simulated_) {
    RankState& rank = ranks_[index(r)];
    const Program& program = work_.program(r);
    rank.waits = RankWaits(program.dependency_counts());
    rank.streams.resize(program.streams().size());
    rank.left = program.ops().size();
    rank.hosts = hosts[index(work_.program_of_rank[index(r)])] != 0;
    total_ops_ += static_cast<std::int64_t>(rank.left);
  }
  for (std::int32_t r = 0; r < work_.ranks(); ++r) {
    if (is_traced(r)) {
      RankState& rank = at(stands_for_[index(r)]);
      rank.traced.push_back(r);
      rank.timing.resize(work_.program(r).ops().size());
    }
  }
}

void ReplayRun::begin(std::int32_t r) {
  const Program& program = work_.program(r);
  for (std::size_t op = 0; op < program.ops().size(); ++op) {
    if (program.dependency_counts()[op] == 0) {
      ready(r, static_cast<std::int32_t>(op));
    }
  }
}

void ReplayRun::ready(std::int32_t r, std::int32_t op) {
  RankState& rank = at(r);
  if (beside_of_ != nullptr && beside_of_->stretch->is_exit(op)) {
    exit_ready_[beside_of_->exit_place(r, op)] = now_;
    return;
  }
  if (!rank.traced.empty()) {
    rank.timing[index(op)].ready = now_;
  }
  const std::int32_t stream = op_of(r, op).stream;
  if (work_.program(r).streams()[index(stream)] == StreamOrder::kNewestFirst) {
    rank.streams[index(stream)].waiting.push_back(op);
  }
  feed(r, stream);
}

/// Starts the stream's next operation if it is free and one is ready.
void ReplayRun::feed(std::int32_t r, std::int32_t stream_index) {
  RankState& rank = at(r);
  RankState::Stream& stream = rank.streams[index(stream_index)];
  if (stream.busy) {
    return;
  }
  const Program& program = work_.program(r);
  std::int32_t op = -1;
  if (program.streams()[index(stream_index)] == StreamOrder::kProgram) {
    const auto ops = program.stream_ops(stream_index);
    if (static_cast<std::size_t>(stream.next) < ops.size() &&
        rank.waits[ops[static_cast<std::size_t>(stream.next)]] == 0) {
      op = ops[static_cast<std::size_t>(stream.next++)];
    }
  } else {
    const auto newest = std::find_if(
        stream.waiting.rbegin(), stream.waiting.rend(),
        [&](std::int32_t each) { return begun_order_.may_begin(rank.begun, r, op_of(r, each)); });
    if (newest != stream.waiting.rend()) {
      op = *newest;
      stream.waiting.erase(std::next(newest).base());
      begun_order_.begin(rank.begun, r, op_of(r, op));
    }
  }
  if (op < 0) {
    return;
  }
  stream.busy = true;
  if (stretches_ == nullptr || beside_of_ != nullptr || !enter_stretch(r, op)) {
    start(r, op);
  }
}

void ReplayRun::start(std::int32_t r, std::int32_t op) {
  RankState& rank = at(r);
  const ProgramOp& what = op_of(r, op);
  Time begin = now_ + what.lead, launched;
  if (what.comm == CommType::kNone && rank.hosts) {
    const auto message =
        std::ranges::find(rank.messages, op, &std::pair<std::int32_t, Time>::first);
    if (message != rank.messages.end()) {
      rank.host = std::max(rank.host, message->second);
      rank.messages.erase(message);
    }
    begin = std::max(begin, rank.host);
    launched = rank.host += what.host;
  }
  if (!rank.traced.empty()) {
    rank.timing[index(op)].begin = rank.timing[index(op)].moved = begin;
  }
  if (what.comm == CommType::kNone) {
    const Time taken = duration(r, op, begin);
    if (interferes()) {
      if (!rank.traced.empty()) {
        rank.timing[index(op)].end = std::max(begin + taken, launched);
      }
      own_.push(
          {rank.beside.start(op, begin, taken, launched, options_.interference), ++order_, r, op},
          now_);
      rank.beside.expect(op, order_);
      most_beside_ = std::max(most_beside_, rank.beside.beside());
    } else {
      own_.push({std::max(begin + taken, launched), ++order_, r, op}, now_);
    }
    return;
  }
  if (interferes() && is_collective(what)) {
    collective(r, what, +1);
  }
  if (folded_ != nullptr && folded_->is_later(r, op)) {
    later_.emplace_back(r, op);
  } else {
    if (under_way_ > 0 && beside_of_ == nullptr) {
      clear_ports(r, folded_->communicator_of(r, op));
    }
    runs_->enter(r, op, now_);
  }
}

Time ReplayRun::duration(std::int32_t r, std::int32_t op, Time begin) const {
  const ProgramOp& what = op_of(r, op);
  return options_.duration ? options_.duration(r, op, what, begin) : what.compute;
}

/// A collective of the rank begins (+1) or ends (-1).
void ReplayRun::collective(std::int32_t r, const ProgramOp& what, std::int32_t by) {
  BesideCollectives& beside = at(r).beside;
  by *= options_.interference.measured.empty() ? 1 : options_.channels(r, what);
  beside.collective(by, now_, options_.interference, [&](std::int32_t op, Time end) {
    own_.push({end, ++order_, r, op}, now_);
    beside.expect(op, order_);
  });
  most_beside_ = std::max(most_beside_, beside.beside());
}

/// Makes the changes that are due.
void ReplayRun::change_network() {
  for (; change_ < options_.changes.size() && options_.changes[change_].when == now_; ++change_) {
    const NetworkChange& change = options_.changes[change_];
    runs_->scale_capacity(change.port, change.share);
  }
}

void ReplayRun::communicated(std::int32_t r, std::int32_t op, Time moved) {
  const ProgramOp& what = op_of(r, op);
  if (!at(r).traced.empty()) {
    at(r).timing[index(op)].moved = moved;
  }
  own_.push({now_ + what.compute, ++order_, r, op}, now_);
  if (frees_stream_early(r, op)) {
    at(r).streams[index(what.stream)].busy = false;
    feed(r, what.stream);
  }
}

/// SimAI's queue goes on when a collective is over; its update time is the layer's alone.
bool ReplayRun::frees_stream_early(std::int32_t r, std::int32_t op) const {
  const ProgramOp& what = op_of(r, op);
  return what.comm != CommType::kNone && what.compute > Time() &&
         work_.program(r).streams()[index(what.stream)] == StreamOrder::kNewestFirst;
}

void ReplayRun::ended(std::int32_t r, std::int32_t op) {
  RankState& rank = at(r);
  if (!rank.traced.empty()) {
    OpTiming& timing = rank.timing[index(op)];
    if (interferes() && op_of(r, op).comm == CommType::kNone) {
      timing.slowed = now_ - timing.end;
    }
    timing.end = now_;
    for (const std::int32_t traced : rank.traced) {
      if (options_.on_op && options_.traced && options_.traced(traced)) {
        options_.on_op(traced, op, timing);
      }
    }
  }
  if (--rank.left < rank.look_below) {
    rank.look_below = 0;
    came_round_.push_back(r);
  }
  ++done_ops_;
  rank.end = now_;
  const std::int32_t stream = op_of(r, op).stream;
  const bool frees = !frees_stream_early(r, op);
  rank.streams[index(stream)].busy = rank.streams[index(stream)].busy && !frees;
  const ProgramOp& what = op_of(r, op);
  if (interferes()) {
    if (what.comm == CommType::kNone) {
      rank.beside.end(op);
    } else if (is_collective(what)) {
      collective(r, what, -1);
    }
  }
  const bool received =
      rank.hosts && (what.type == OpType::kForwardReceive || what.type == OpType::kBackwardReceive);
  for (const std::int32_t next : work_.program(r).successors(op)) {
    if (received && op_of(r, next).comm == CommType::kNone) {
      std::erase_if(rank.messages, [&](const auto& each) { return each.first == next; });
      rank.messages.emplace_back(next, now_);
    }
    if (rank.waits.end_one(next) == 0) {
      ready(r, next);
    }
  }
  if (frees) {
    feed(r, stream);
  }
}

}  // namespace lockstep
