#include "analysis/compare/common_ends.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "analysis/compare/errors.h"

namespace lockstep::compare {
namespace {

constexpr double kTogether = 20e-6;     // seconds
constexpr double kTogetherShare = 0.1;  // of the shorter time
constexpr double kApart = 2;            // who is outside is so many times as far as who is within
constexpr std::size_t kNeighbours = 64;
constexpr std::size_t kLooked = 101;  // operations of a rank

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// How far apart the ends of two ranks are in the median; nothing where they are not of one group.
std::optional<double> apart(const EndsOfRank& a, const EndsOfRank& b) {
  if (a.ops.size() != b.ops.size()) {
    return std::nullopt;
  }
  std::vector<double> seconds, shares;  // shares: of what is allowed
  const std::size_t stride = (a.ops.size() + kLooked - 1) / kLooked;
  for (std::size_t k = 0; k < a.ops.size(); k += stride) {
    const EndsOfRank::Op &one = a.ops[k], &other = b.ops[k];
    if (one.op != other.op || (one.bytes >= 0 && other.bytes >= 0 && one.bytes != other.bytes)) {
      return std::nullopt;
    }
    if (one.duration_s >= 0 && other.duration_s >= 0) {
      seconds.push_back(std::abs(one.end_s - other.end_s));
      shares.push_back(
          seconds.back() /
          std::max(kTogether, kTogetherShare * std::min(one.duration_s, other.duration_s)));
    }
  }
  return seconds.empty() || median(std::move(shares)) > 1
             ? std::nullopt
             : std::optional(median(std::move(seconds)));
}

double middle_end(const EndsOfRank& rank) {
  return rank.ops.empty() ? 0 : rank.ops[rank.ops.size() / 2].end_s;
}

/// Whether the middle one ends so long after this rank's that it is none of its group, whatever the
/// others do.
bool far_behind(const EndsOfRank& rank, const EndsOfRank& later) {
  constexpr double kMost = 10;  // times what is allowed
  const double lasts = rank.ops.empty() ? 0 : rank.ops[rank.ops.size() / 2].duration_s;
  return rank.ops.size() != later.ops.size() ||
         middle_end(later) - middle_end(rank) > kMost * std::max(kTogether, kTogetherShare * lasts);
}

/// Sets of ranks that grow together, and how far apart their members are that met last.
class Sets {
 public:
  explicit Sets(std::size_t count) : up_(count), members_(count, 1), within_(count) {
    std::iota(up_.begin(), up_.end(), 0);
  }
  std::int64_t of(std::int64_t i) {
    while (up_[at(i)] != i) {
      i = up_[at(i)] = up_[at(up_[at(i)])];
    }
    return i;
  }
  void join(std::int64_t a, std::int64_t b, double distance, std::int64_t most) {
    a = of(a);
    b = of(b);
    if (a != b && members_[at(a)] + members_[at(b)] <= most) {
      up_[at(std::max(a, b))] = std::min(a, b);
      members_[at(std::min(a, b))] = members_[at(a)] + members_[at(b)];
      within_[at(std::min(a, b))] = std::max({within_[at(a)], within_[at(b)], distance});
    }
  }
  double within(std::int64_t set) const { return within_[at(set)]; }

 private:
  std::vector<std::int64_t> up_, members_;
  std::vector<double> within_;
};

struct Pair {
  double distance = 0;
  std::int64_t a = 0, b = 0;
};

/// Of known size: the nearest first. `order`: ranks by time.
std::vector<std::int64_t> sets_of_nearest(const std::vector<EndsOfRank>& ranks,
                                          const std::vector<std::int64_t>& order,
                                          std::int64_t size) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < std::min(order.size(), i + 1 + kNeighbours); ++j) {
      if (far_behind(ranks[at(order[i])], ranks[at(order[j])])) {
        break;
      }
      if (const auto distance = apart(ranks[at(order[i])], ranks[at(order[j])])) {
        pairs.push_back({*distance, order[i], order[j]});
      }
    }
  }
  std::ranges::stable_sort(pairs, {}, &Pair::distance);
  Sets sets(ranks.size());
  for (const Pair& pair : pairs) {
    sets.join(pair.a, pair.b, pair.distance, size);
  }
  // Who is as near to others as to its own may be of these.
  std::vector<bool> unclear(ranks.size());
  for (const Pair& pair : pairs) {
    for (const std::int64_t set : {sets.of(pair.a), sets.of(pair.b)}) {
      if (sets.of(pair.a) != sets.of(pair.b) && pair.distance <= kApart * sets.within(set)) {
        unclear[at(set)] = true;
      }
    }
  }
  std::vector<std::int64_t> set_of(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t set = sets.of(static_cast<std::int64_t>(i));
    set_of[i] = unclear[at(set)] ? -1 : set;
  }
  return set_of;
}

/// Of unknown size: each is with the first of those that came before it in time that it is near.
std::vector<std::int64_t> sets_near_the_first(const std::vector<EndsOfRank>& ranks,
                                              const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> firsts, set_of(ranks.size());
  for (const std::int64_t i : order) {
    const auto from =
        firsts.end() - static_cast<std::ptrdiff_t>(std::min(firsts.size(), kNeighbours));
    const auto own = std::find_if(from, firsts.end(), [&](std::int64_t first) {
      return apart(ranks[at(first)], ranks[at(i)]).has_value();
    });
    set_of[at(i)] = own == firsts.end() ? i : *own;
    if (own == firsts.end()) {
      firsts.push_back(i);
    }
  }
  return set_of;
}

}  // namespace

std::vector<std::vector<std::int32_t>> ranks_that_end_together(const std::vector<EndsOfRank>& ranks,
                                                               std::int32_t size) {
  std::vector<std::int64_t> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int64_t i) {
    return std::pair(ranks[at(i)].ops.size(), middle_end(ranks[at(i)]));
  });
  const std::vector<std::int64_t> set_of =
      size > 0 ? sets_of_nearest(ranks, order, size) : sets_near_the_first(ranks, order);
  std::map<std::int64_t, std::vector<std::int32_t>> sets;
  std::vector<std::vector<std::int32_t>> groups;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (set_of[i] < 0) {
      groups.push_back({ranks[i].rank});
    } else {
      sets[set_of[i]].push_back(ranks[i].rank);
    }
  }
  for (auto& [first, members] : sets) {
    std::ranges::sort(members);
    groups.push_back(std::move(members));
  }
  return groups;
}

}  // namespace lockstep::compare
