#include "app/sweep/coordinator.h"

#include <algorithm>
#include <utility>

#include "app/sweep/same_files.h"
#include "app/sweep/worker.h"

namespace lockstep {
namespace {

constexpr int kInHand = 2;  // points that another rank has at once

}  // namespace

SweepCoordinator::SweepCoordinator(const Grid& grid, SweepRunner& runner, Crew* crew,
                                   SweepJournal& journal, MakeTask make_task)
    : grid_(grid),
      runner_(runner),
      crew_(crew),
      journal_(journal),
      make_task_(std::move(make_task)),
      cost_(grid),
      given_(crew == nullptr ? 1 : static_cast<std::size_t>(crew->size())) {}

void SweepCoordinator::sort_waiting() {
  std::vector<std::pair<double, std::int64_t>> keyed;
  keyed.reserve(waiting_.size());
  for (const std::int64_t point : waiting_) {
    keyed.emplace_back(cost_.predict(grid_.point(point)), -point);
  }
  std::ranges::sort(keyed);  // of equals, the lowest number last
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    waiting_[i] = -keyed[i].second;
  }
}

void SweepCoordinator::serve(std::size_t rank, int in_hand) {
  const int most = rank == 0 ? 1 : in_hand;
  while (given_[rank] < most && !waiting_.empty()) {
    SweepTask task = make_task_(waiting_.back());
    waiting_.pop_back();
    ++given_[rank];
    if (rank == 0) {
      runner_.start(std::move(task));
    } else {
      crew_->send(static_cast<int>(rank), to_letter(task));
    }
  }
}

void SweepCoordinator::take_in(const SweepRow& row) {
  --given_[static_cast<std::size_t>(row.rank)];
  journal_.add(row);
  ++taken_in_;
  if (row.ending == Ending::kDone) {
    cost_.learn(grid_.point(row.point), row.wall_s);
  }
  if (cost_.learned() >= sort_at_) {
    sort_at_ *= 2;
    sort_waiting();
  }
}

bool SweepCoordinator::run(std::vector<std::int64_t> points,
                           const std::function<bool(std::int64_t)>& each) {
  waiting_ = std::move(points);
  const auto all = static_cast<std::int64_t>(waiting_.size());
  sort_waiting();
  for (int in_hand = 1; in_hand <= kInHand; ++in_hand) {  // the longest to different ranks
    for (std::size_t rank = 0; rank < given_.size(); ++rank) {
      serve(rank, in_hand);
    }
  }
  Patience patience;
  bool go_on = true;
  while (taken_in_ < all && go_on) {
    const std::int64_t before = taken_in_;
    for (std::size_t turn = 1; turn < given_.size(); ++turn) {  // then our own runner has its turn
      const auto letter = crew_->receive();
      if (!letter) {
        break;
      }
      if (is_answer(letter->text)) {
        check_answer(letter->text, letter->from);
        continue;
      }
      const auto row = row_of_line(letter->text);
      LOCKSTEP_CHECK(row.has_value() && row->rank == letter->from, "a rank sent no row");
      take_in(*row);
      serve(static_cast<std::size_t>(row->rank), kInHand);
    }
    // Alone, there is nothing else to look at; but a signal should not wait for long.
    const auto wait = crew_ != nullptr ? patience.next() : std::chrono::microseconds(100'000);
    if (runner_.busy() && runner_.ready(wait)) {
      take_in(runner_.finish());
      serve(0, 1);
    } else if (!runner_.busy() && taken_in_ == before) {
      runner_.ready(wait);  // only sleeps
    }
    if (taken_in_ > before) {
      patience.reset();
    }
    go_on = each(taken_in_);
  }
  return taken_in_ == all;
}

}  // namespace lockstep
