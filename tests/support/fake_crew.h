#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "app/sweep/crew.h"
#include "app/sweep/row.h"
#include "app/sweep/sweep_task.h"

namespace lockstep::testing {

/// Ranks that answer at once, in the order of the letters, with a row that says nothing.
class FakeCrew final : public Crew {
 public:
  explicit FakeCrew(int size) : size_(size), in_hand_(static_cast<std::size_t>(size)) {}

  int rank() const override { return 0; }
  int size() const override { return size_; }
  void send(int to, std::string text) override {
    const SweepTask task = task_of_letter(text);
    int& hand = in_hand_[static_cast<std::size_t>(to)];
    most_in_hand_ = std::max(most_in_hand_, ++hand);
    ++times_sent_[task.point];
    order_.push_back(task.point);
    if (silent_.contains(to)) {
      return;
    }
    SweepRow row;
    row.point = task.point;
    row.rank = to;
    row.wall_s = 0.01;
    row.outputs = {{"total_s", 0.00119635475}, {"engine", "flow"}, {"gpus", 1024}};
    answers_.push_back({to, to_line(row)});
  }
  std::optional<CrewMessage> receive() override {
    if (answers_.empty()) {
      return std::nullopt;
    }
    CrewMessage message = std::move(answers_.front());
    answers_.pop_front();
    --in_hand_[static_cast<std::size_t>(message.from)];
    return message;
  }

  /// The rank takes points and never answers.
  void silence(int rank) { silent_.insert(rank); }

  int most_in_hand() const { return most_in_hand_; }
  int in_hand(int rank) const { return in_hand_[static_cast<std::size_t>(rank)]; }
  const std::map<std::int64_t, int>& times_sent() const { return times_sent_; }
  const std::vector<std::int64_t>& order() const { return order_; }  ///< in which they were sent

 private:
  int size_;
  int most_in_hand_ = 0;
  std::vector<int> in_hand_;
  std::map<std::int64_t, int> times_sent_;
  std::vector<std::int64_t> order_;
  std::set<int> silent_;
  std::deque<CrewMessage> answers_;
};

}  // namespace lockstep::testing
