// A folded step from one phase to the next.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/replay_run.h"

namespace lockstep {

/// Communication in the last phase that there is.
void ReplayRun::fold_runs() {
  const StepFold& fold = *folds_.back();
  SessionStore* sessions = folder_->kept() != nullptr ? &folder_->kept()->sessions : nullptr;
  if (sessions == nullptr) {
    sessions_ = std::make_unique<SessionStore>();
    sessions_->watch([this] {
      folded_moments_ += SessionStore::kWatchedMoments;
      check_work();
    });
    sessions = sessions_.get();
  }
  auto runs = std::make_unique<FoldedRuns>(
      work_, fold, *sessions,
      [this](std::int32_t rank, std::int32_t op, Time moved) { communicated(rank, op, moved); });
  folded_ = runs.get();
  runs_ = std::move(runs);
  if (stretches_ != nullptr) {
    beside_ = std::make_unique<FoldedRuns>(
        *folded_,
        [this](std::int32_t rank, std::int32_t op, Time moved) { communicated(rank, op, moved); });
    teams_.emplace(work_, fold, *folded_, *stretches_);
  }
  simulated_ = fold.representative;
  stands_for_.clear();
  for (const std::int32_t of_class : fold.class_of_rank) {
    stands_for_.push_back(fold.representative[index(of_class)]);
  }
  watch_parts();
}

/// Splits the classes of ranks. Each part goes on where its class stands.
void ReplayRun::next_phase() {
  simulate_stretches();
  const std::vector<std::int32_t> stood_for = stands_for_;
  const std::unique_ptr<SessionStore> sessions_before = std::move(sessions_);
  std::unique_ptr<Communication> before = std::move(runs_);
  FoldedRuns& folded_before = *folded_;
  carried_.push_back(folded_before.carried_bits());
  folds_.push_back(folder_->fold(1));
  fold_runs();
  for (std::size_t i = 0; i < change_; ++i) {
    runs_->scale_capacity(options_.changes[i].port, options_.changes[i].share);
  }
  folded_->go_on_from(folded_before, now_);
  before.reset();
  if (folder_->kept() == nullptr) {
    StepFold& fold_before = *folds_[folds_.size() - 2];  // only what it carried is needed
    fold_before.graph = {};
    fold_before.communicators = {};
    fold_before.known.reset();
  }

  std::vector<std::vector<std::int32_t>> parts(ranks_.size());  // of each simulated before
  for (const std::int32_t r : simulated_) {
    parts[static_cast<std::size_t>(stood_for[index(r)])].push_back(r);
  }
  for (std::size_t old = 0; old < ranks_.size(); ++old) {
    if (parts[old].empty()) {
      continue;
    }
    ranks_[old].waits.trim();
    for (const std::int32_t r : parts[old]) {
      if (index(r) != old) {
        at(r) = ranks_[old];
      }
      at(r).look_below = 0;
      at(r).traced.clear();
    }
  }
  for (std::int32_t r = 0; r < work_.ranks(); ++r) {
    if (is_traced(r)) {
      at(stands_for_[index(r)]).traced.push_back(r);
    }
  }
  total_ops_ = done_ops_ = 0;
  for (const std::int32_t r : simulated_) {
    if (at(r).traced.empty()) {
      at(r).timing = {};
    }
    const auto ops = static_cast<std::int64_t>(work_.program(r).ops().size());
    total_ops_ += ops;
    done_ops_ += ops - static_cast<std::int64_t>(at(r).left);
  }
  check_limit(total_ops_ - done_ops_);
  std::vector<OwnEvent> events;
  for (; !own_.empty(); own_.pop()) {
    if (!out_of_date(own_.top(), ranks_[static_cast<std::size_t>(own_.top().rank)]) &&
        withdrawn_.erase(own_.top().order) == 0) {
      events.push_back(own_.top());
    }
  }
  for (const OwnEvent& event : events) {
    for (const std::int32_t r : parts[static_cast<std::size_t>(event.rank)]) {
      own_.push({event.when, ++order_, r, event.op}, now_);
      if (interferes() && op_of(r, event.op).comm == CommType::kNone) {
        at(r).beside.expect(event.op, order_);
      }
    }
  }
  const auto later = std::move(later_);
  later_.clear();
  for (const auto& [rank, op] : later) {
    for (const std::int32_t r : parts[index(rank)]) {
      runs_->enter(r, op, now_);
    }
  }
  watch_ranks();
}

}  // namespace lockstep
