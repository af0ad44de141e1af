#include "planner/aceso/search/stage_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::aceso {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::size_t kLevels = 4;

/// A way to run the ops so far.
struct Label {
  double time = 0;
  Units memory = 0;  ///< what adds up: weights' copies, activations in flight, less what is saved
  Units run = 0, peak = 0;
  Units forward = 0, backward = 0, weights = 0;
  double bound = 0;
  std::int32_t parent = -1;
  std::int16_t choice = 0;
  std::int8_t tensor = 0, flag = 0;  ///< of the first op; of this op
};

/// Completion bounds of one op: [choice][flag][level].
using Tail = std::vector<std::array<std::array<Lanes, kLevels>, 2>>;

class Solver {
 public:
  Solver(const Space& space, const StageKind& kind, std::int64_t first, std::int64_t end,
         std::int64_t labels_an_op)
      : space_(space),
        kind_(kind),
        first_(first),
        end_(end),
        whole_(first == 0 && end == static_cast<std::int64_t>(space.op_row.size())),
        labels_an_op_(labels_an_op) {
    find_levels();
    for (int a = 0; a <= space.tensor_index.back(); ++a) {
      for (int b = 0; b <= space.tensor_index.back(); ++b) {
        send_gap_.push_back(send_gap(a, b));
      }
    }
  }

  StageAnswer solve(const Lanes& ladder, double cap) {
    StageAnswer answer;
    const std::size_t best = set_prices(ladder);
    Lanes fine{};
    const double low = best > 0 ? ladder[best - 1] : 0;
    const double high = best + 1 < kLanes ? ladder[best + 1] : ladder[best] * 4;
    for (std::size_t l = 0; l < kLanes; ++l) {
      fine[l] = low + (high - low) * static_cast<double>(l) / (kLanes - 1);
    }
    const double coarse = root_bound_;
    set_prices(fine);
    if (root_bound_ < coarse) {
      set_prices(ladder);  // other ways want prices beyond the fine ones
    }
    answer.bound_us = root_bound_;
    if (root_bound_ > cap) {
      return answer;
    }
    for (double gap = 3e-4;; gap *= 4) {
      const double limit = std::min(cap, root_bound_ + gap * std::max(root_bound_, 1e-6 * cap));
      answer.exact = true;
      answer.found = run(limit, answer);
      if (answer.found || limit >= cap) {
        break;
      }
    }
    if (!answer.found && answer.exact) {
      answer.bound_us = std::max(cap, root_bound_);
    } else if (answer.found && answer.exact) {
      answer.bound_us = answer.solution.time_us;
    }
    return answer;
  }

 private:
  std::size_t length() const { return static_cast<std::size_t>(end_ - first_); }

  /// How much longer a label whose first op has degree b could send than one with degree a.
  double send_gap(int a, int b) const {
    double gap = -kFar;
    for (std::size_t c = 0; c < space_.choices.size(); ++c) {
      gap = std::max(gap, space_.send(a, end_ - 1, c, kind_.sends_across, whole_) -
                              space_.send(b, end_ - 1, c, kind_.sends_across, whole_));
    }
    return gap;
  }

  /// Levels of the peak: up to which activations an op may be saved, and what saving one beyond the
  /// level before costs at least.
  void find_levels() {
    std::vector<Units> sizes;
    for (std::int64_t op = first_; op + 1 < end_; ++op) {
      for (std::size_t c = 0; c < space_.choices.size(); ++c) {
        if (space_.at(op, c).allowed && space_.at(op, c).activations > 0 &&
            space_.recomputable[static_cast<std::size_t>(op)] != 0) {
          sizes.push_back(space_.at(op, c).activations);
        }
      }
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    // The widest gaps between sizes separate the levels.
    std::vector<std::pair<Units, std::size_t>> gaps;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      gaps.emplace_back(sizes[i] - (i == 0 ? 0 : sizes[i - 1]), i);
    }
    std::sort(gaps.begin(), gaps.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    gaps.resize(std::min(gaps.size(), kLevels - 1));
    std::vector<std::size_t> starts;
    starts.reserve(gaps.size());
    for (const auto& gap : gaps) {
      starts.push_back(gap.second);
    }
    std::sort(starts.begin(), starts.end());
    level_charge_.push_back(0);
    for (const std::size_t start : starts) {
      level_limit_.push_back(start == 0 ? 0 : sizes[start - 1]);
      level_charge_.push_back(sizes[start]);
    }
    level_limit_.push_back(std::numeric_limits<Units>::max());
    levels_ = level_limit_.size();
    // The run that is open at the end is not counted: it begins after the last op that closes one.
    last_close_ = first_ - 1;
    for (std::int64_t op = first_; op + 1 < end_; ++op) {
      const auto at = static_cast<std::size_t>(op);
      if (space_.closes[at] != 0 || (op + 2 == end_ && space_.ordinary[at] != 0)) {
        last_close_ = op;
      }
    }
  }

  /// Completion bounds for these prices; returns the price that bounds the stage best.
  std::size_t set_prices(const Lanes& ladder) {
    const std::size_t choices = space_.choices.size();
    const auto flights = static_cast<double>(kind_.in_flight);
    for (std::size_t l = 0; l < kLanes; ++l) {
      price_[l] = ladder[l] / flights;
    }
    tails_.assign(length(), Tail(choices));
    for (Tail& tail : tails_) {
      for (auto& flags : tail) {
        for (auto& levels : flags) {
          for (Lanes& lanes : levels) {
            lanes.fill(kFar);
          }
        }
      }
    }
    for (std::size_t c = 0; c < choices; ++c) {
      if (!space_.at(end_ - 1, c).allowed) {
        continue;
      }
      double send = kFar;
      for (int t = 0; t <= space_.tensor_index.back(); ++t) {
        send = std::min(send, space_.send(t, end_ - 1, c, kind_.sends_across, whole_));
      }
      for (auto& levels : tails_.back()[c]) {
        for (std::size_t v = 0; v < levels_; ++v) {
          levels[v].fill(send);
        }
      }
    }
    for (std::int64_t op = end_ - 2; op >= first_; --op) {
      extend_tail(op);
    }
    reserve_from_.assign(length() + 1, {0, 0});
    for (std::int64_t op = end_ - (kind_.reserve_last ? 1 : 2); op >= first_; --op) {
      const std::size_t at = static_cast<std::size_t>(op - first_);
      Units forward = std::numeric_limits<Units>::max(), backward = forward;
      for (std::size_t c = 0; c < choices; ++c) {
        if (space_.at(op, c).allowed) {
          forward = std::min(forward, space_.at(op, c).forward_reserved);
          backward = std::min(backward, space_.at(op, c).backward_reserved);
        }
      }
      reserve_from_[at] = {std::max(forward, reserve_from_[at + 1].first),
                           std::max(backward, reserve_from_[at + 1].second)};
    }
    return bound_root();
  }

  void extend_tail(std::int64_t op) {
    const auto at = static_cast<std::size_t>(op);
    const auto flights = static_cast<double>(kind_.in_flight);
    Tail& here = tails_[static_cast<std::size_t>(op - first_)];
    const Tail& after = tails_[static_cast<std::size_t>(op - first_) + 1];
    const bool exempt = op > last_close_;
    for (const Step& step : space_.steps[static_cast<std::size_t>(space_.pair[at])]) {
      const auto from = static_cast<std::size_t>(step.from), to = static_cast<std::size_t>(step.to);
      const OpChoice& next = space_.at(op + 1, to);
      const Units activations = space_.at(op, from).activations;
      const auto memory = static_cast<double>(kind_.in_flight * next.activations +
                                              kind_.weight_copies * next.weights);
      for (int flag = 0; flag < 2; ++flag) {
        for (int then = 0; then <= space_.recomputable[at + 1]; ++then) {
          const bool saves = flag == 1 && then == 1;
          const double us = step.us + next.time_us + (then == 1 ? next.forward_us : 0);
          const double change = memory - (saves && space_.counts_when_saved[at] != 0
                                              ? flights * static_cast<double>(activations)
                                              : 0);
          for (std::size_t v = 0; v < levels_; ++v) {
            if (saves && !exempt && activations > level_limit_[v]) {
              continue;
            }
            const Lanes& source = after[to][static_cast<std::size_t>(then)][v];
            Lanes& target = here[from][static_cast<std::size_t>(flag)][v];
            for (std::size_t l = 0; l < kLanes; ++l) {
              target[l] = std::min(target[l], source[l] + (us + price_[l] * change));
            }
          }
        }
      }
    }
  }

  /// The least time a label can end with.
  double bound_of(const Label& label, std::int64_t op) const {
    const std::size_t at = static_cast<std::size_t>(op - first_);
    const auto& tail =
        tails_[at][static_cast<std::size_t>(label.choice)][static_cast<std::size_t>(label.flag)];
    const auto& reserve = reserve_from_[std::min(at + 1, length())];
    const Units reserved =
        std::max(std::max(label.forward, reserve.first) + std::max(label.backward, reserve.second),
                 label.weights);
    double least = kFar;
    for (std::size_t v = 0; v < levels_; ++v) {
      if (v + 1 < levels_ && label.peak >= level_charge_[v + 1]) {
        continue;  // the next level costs no more and allows more
      }
      const auto over = static_cast<double>(label.memory + std::max(label.peak, level_charge_[v]) +
                                            reserved - kind_.limit);
      double most = -kFar;
      for (std::size_t l = 0; l < kLanes; ++l) {
        most = std::max(most, tail[v][l] + price_[l] * over);
      }
      least = std::min(least, most);
    }
    return label.time + least;
  }

  Label root(std::size_t choice, int flag) const {
    const OpChoice& op = space_.at(first_, choice);
    Label label;
    label.time = op.time_us + (flag == 1 ? op.forward_us : 0) +
                 space_.receive(first_, choice, kind_.receives_across, whole_);
    label.memory = kind_.in_flight * (op.input + op.activations) + kind_.weight_copies * op.weights;
    label.weights = op.weights;
    label.choice = static_cast<std::int16_t>(choice);
    label.flag = static_cast<std::int8_t>(flag);
    label.tensor = static_cast<std::int8_t>(space_.tensor_index[choice]);
    if (length() > 1 || kind_.reserve_last) {
      label.forward = op.forward_reserved;
      label.backward = op.backward_reserved;
    }
    return label;
  }

  /// The stage's bound, and the price at which it is reached.
  std::size_t bound_root() {
    root_bound_ = kFar;
    std::size_t best = 0;
    for (std::size_t c = 0; c < space_.choices.size(); ++c) {
      if (!space_.at(first_, c).allowed) {
        continue;
      }
      for (int flag = 0; flag <= space_.recomputable[static_cast<std::size_t>(first_)]; ++flag) {
        const Label label = root(c, flag);
        const double bound = bound_of(label, first_);
        if (bound < root_bound_) {
          root_bound_ = bound;
          best = best_price(label);
        }
      }
    }
    return best;
  }

  std::size_t best_price(const Label& label) const {
    const auto& tail =
        tails_[0][static_cast<std::size_t>(label.choice)][static_cast<std::size_t>(label.flag)];
    const Units reserved =
        std::max(reserve_from_[0].first + reserve_from_[0].second, label.weights);
    double least = kFar;
    std::size_t best = 0;
    for (std::size_t v = 0; v < levels_; ++v) {
      const auto over =
          static_cast<double>(label.memory + level_charge_[v] + reserved - kind_.limit);
      double most = -kFar;
      std::size_t price = 0;
      for (std::size_t l = 0; l < kLanes; ++l) {
        if (tail[v][l] + price_[l] * over > most) {
          most = tail[v][l] + price_[l] * over;
          price = l;
        }
      }
      if (most < least) {
        least = most;
        best = price;
      }
    }
    return best;
  }

  /// Whether a way through a does at least as well as any through b. The labels stand at one op,
  /// with the same choice and flag.
  bool dominates(const Label& a, const Label& b) const {
    const auto tensors = static_cast<std::size_t>(space_.tensor_index.back()) + 1;
    const double gap = send_gap_[static_cast<std::size_t>(a.tensor) * tensors +
                                 static_cast<std::size_t>(b.tensor)];
    if (a.time + (a.tensor == b.tensor ? 0 : std::max(gap, 0.0)) > b.time) {
      return false;
    }
    const Units zero = 0;
    const Units peak = std::max({zero, a.peak - b.peak, a.run - b.run});
    const Units reserve =
        std::max(std::max(zero, a.forward - b.forward) + std::max(zero, a.backward - b.backward),
                 a.weights - b.weights);
    return a.memory + peak + std::max(zero, reserve) <= b.memory;
  }

  /// Whether one of arena[begin…] dominates the label; memories_ are theirs, side by side, as most
  /// are ruled out by that alone. The latest are the likeliest.
  bool is_dominated(const Label& label, const std::vector<Label>& arena, std::size_t begin) const {
    for (std::size_t n = memories_.size(); n-- > 0;) {
      if (memories_[n] <= label.memory && dominates(arena[begin + n], label)) {
        return true;
      }
    }
    return false;
  }

  Label extend(const Label& label, std::int32_t parent, std::int64_t op, const Step& step,
               int flag) const {
    const auto at = static_cast<std::size_t>(op);
    const auto to = static_cast<std::size_t>(step.to);
    const OpChoice& next = space_.at(op + 1, to);
    Label made = label;
    made.time += step.us + next.time_us + (flag == 1 ? next.forward_us : 0);
    made.memory += kind_.in_flight * next.activations + kind_.weight_copies * next.weights;
    made.weights += next.weights;
    if (label.flag == 1 && flag == 1) {
      const Units activations = space_.at(op, static_cast<std::size_t>(label.choice)).activations;
      if (space_.counts_when_saved[at] != 0) {
        made.memory -= kind_.in_flight * activations;
      }
      made.run += activations;
      if (space_.closes[at] != 0 || (op + 2 == end_ && space_.ordinary[at] != 0)) {
        made.peak = std::max(made.peak, made.run);
        made.run = 0;
      }
    } else {
      made.peak = std::max(made.peak, made.run);
      made.run = 0;
    }
    if (op + 2 < end_ || kind_.reserve_last) {
      made.forward = std::max(made.forward, next.forward_reserved);
      made.backward = std::max(made.backward, next.backward_reserved);
    }
    made.parent = parent;
    made.choice = static_cast<std::int16_t>(step.to);
    made.flag = static_cast<std::int8_t>(flag);
    return made;
  }

  void keep(Label label, std::int64_t op, double limit, std::vector<std::vector<Label>>& nodes) {
    label.bound = bound_of(label, op);
    if (label.bound <= limit) {
      nodes[static_cast<std::size_t>(label.choice) * 2 + static_cast<std::size_t>(label.flag)]
          .push_back(label);
    }
  }

  /// Drops dominated labels and puts the rest into the arena.
  void settle(std::vector<std::vector<Label>>& nodes, std::size_t budget, bool& exact) {
    auto& arena = arenas_.emplace_back();
    for (std::vector<Label>& node : nodes) {
      std::sort(node.begin(), node.end(), [](const Label& a, const Label& b) {
        return a.time != b.time ? a.time < b.time : a.memory < b.memory;
      });
      const std::size_t begin = arena.size();
      memories_.clear();
      for (const Label& label : node) {
        if (!is_dominated(label, arena, begin)) {
          memories_.push_back(label.memory);
          arena.push_back(label);
        }
      }
      node.clear();
    }
    // Of too many those of least bound are kept and, as these may all turn out too large, for a
    // fifth of the budget those of least memory.
    if (arena.size() > budget) {
      exact = false;
      const auto promising = arena.begin() + static_cast<std::ptrdiff_t>(budget - budget / 5);
      std::nth_element(arena.begin(), promising, arena.end(), [](const Label& a, const Label& b) {
        return a.bound != b.bound ? a.bound < b.bound : a.memory < b.memory;
      });
      std::nth_element(promising, arena.begin() + static_cast<std::ptrdiff_t>(budget), arena.end(),
                       [](const Label& a, const Label& b) {
                         const Units left = memory_at_end(a), right = memory_at_end(b);
                         return left != right ? left < right : a.bound < b.bound;
                       });
      arena.resize(budget);
    }
  }

  /// All ways within `limit`; whether there is one.
  bool run(double limit, StageAnswer& answer) {
    arenas_.clear();
    const auto budget = static_cast<std::size_t>(labels_an_op_);
    std::vector<std::vector<Label>> nodes(space_.choices.size() * 2);
    for (std::size_t c = 0; c < space_.choices.size(); ++c) {
      if (space_.at(first_, c).allowed) {
        for (int flag = 0; flag <= space_.recomputable[static_cast<std::size_t>(first_)]; ++flag) {
          keep(root(c, flag), first_, limit, nodes);
        }
      }
    }
    settle(nodes, budget, answer.exact);
    for (std::int64_t op = first_; op + 1 < end_; ++op) {
      const auto at = static_cast<std::size_t>(op);
      const std::vector<Label>& arena = arenas_.back();
      if (arena.empty()) {
        return false;
      }
      const std::vector<Step>& steps = space_.steps[static_cast<std::size_t>(space_.pair[at])];
      for (std::size_t n = 0; n < arena.size(); ++n) {
        for (const Step& step : steps) {
          if (step.from == arena[n].choice) {
            for (int flag = 0; flag <= space_.recomputable[at + 1]; ++flag) {
              keep(extend(arena[n], static_cast<std::int32_t>(n), op, step, flag), op + 1, limit,
                   nodes);
            }
          }
        }
      }
      settle(nodes, budget, answer.exact);
      answer.labels += static_cast<std::int64_t>(arenas_.back().size());
    }
    return pick(limit, answer);
  }

  static Units memory_at_end(const Label& label) {
    return label.memory + label.peak + std::max(label.forward + label.backward, label.weights);
  }

  bool pick(double limit, StageAnswer& answer) {
    const std::vector<Label>& arena = arenas_.back();
    std::int32_t best = -1;
    double time = kFar;
    for (std::size_t n = 0; n < arena.size(); ++n) {
      const double sent = arena[n].time + space_.send(arena[n].tensor, end_ - 1,
                                                      static_cast<std::size_t>(arena[n].choice),
                                                      kind_.sends_across, whole_);
      if (memory_at_end(arena[n]) <= kind_.limit && sent < time) {
        time = sent;
        best = static_cast<std::int32_t>(n);
      }
    }
    if (best < 0 || time > limit) {
      return false;
    }
    answer.solution.time_us = time;
    answer.solution.places.resize(length());
    answer.solution.recompute.resize(length());
    for (std::size_t op = length(); op-- > 0;) {
      const Label& label = arenas_[op][static_cast<std::size_t>(best)];
      answer.solution.places[op] = space_.choices[static_cast<std::size_t>(label.choice)];
      answer.solution.recompute[op] = label.flag;
      best = label.parent;
    }
    return true;
  }

  const Space& space_;
  const StageKind& kind_;
  std::int64_t first_, end_;
  bool whole_;
  std::int64_t labels_an_op_;
  std::vector<double> send_gap_;
  std::vector<Units> level_limit_, level_charge_;
  std::size_t levels_ = 1;
  std::int64_t last_close_ = 0;
  Lanes price_{};
  std::vector<Tail> tails_;
  std::vector<std::pair<Units, Units>> reserve_from_;
  double root_bound_ = 0;
  std::vector<std::vector<Label>> arenas_;
  std::vector<Units> memories_;
};

}  // namespace

StageAnswer solve_stage(const Space& space, const StageKind& kind, const Lanes& ladder,
                        std::int64_t first, std::int64_t end, double cap_us,
                        std::int64_t labels_an_op) {
  return Solver(space, kind, first, end, labels_an_op).solve(ladder, cap_us);
}

}  // namespace lockstep::aceso
