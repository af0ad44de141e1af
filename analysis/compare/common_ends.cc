#include "analysis/compare/common_ends.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "analysis/compare/errors.h"
#include "base/sets.h"

namespace lockstep::compare {
namespace {

constexpr double kTogether = 20e-6;     // seconds
constexpr double kTogetherShare = 0.1;  // of the shorter time
constexpr double kApart = 2;            // who is outside is so many times as far as who is within
constexpr std::size_t kNeighbours = 64;
constexpr std::size_t kLooked = 101;  // operations of a rank

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

struct Pair {
  double distance = 0;
  std::size_t a = 0, b = 0;
};

/// Of known size: the nearest first. `order`: ranks by time.
std::vector<std::optional<std::size_t>> sets_of_nearest(const std::vector<EndsOfRank>& ranks,
                                                        const std::vector<std::size_t>& order,
                                                        std::size_t size) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < std::min(order.size(), i + 1 + kNeighbours); ++j) {
      if (far_behind(ranks[order[i]], ranks[order[j]])) {
        break;
      }
      if (const auto distance = apart(ranks[order[i]], ranks[order[j]])) {
        pairs.push_back({*distance, order[i], order[j]});
      }
    }
  }
  std::ranges::stable_sort(pairs, {}, &Pair::distance);
  Sets sets(ranks.size());
  std::vector<std::size_t> members(ranks.size(), 1);  // by set
  std::vector<double> within(ranks.size());           // how far apart those are that met last
  for (const Pair& pair : pairs) {
    const std::size_t a = sets.find(pair.a), b = sets.find(pair.b);
    if (a != b && members[a] + members[b] <= size) {
      sets.join(a, b);
      const std::size_t both = sets.find(a);
      members[both] = members[a] + members[b];
      within[both] = pair.distance;
    }
  }
  // Who is as near to others as to its own may be of these.
  std::vector<bool> unclear(ranks.size());
  for (const Pair& pair : pairs) {
    const std::size_t a = sets.find(pair.a), b = sets.find(pair.b);
    for (const std::size_t set : {a, b}) {
      if (a != b && pair.distance <= kApart * within[set]) {
        unclear[set] = true;
      }
    }
  }
  std::vector<std::optional<std::size_t>> set_of(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t set = sets.find(i);
    set_of[i] = unclear[set] ? std::nullopt : std::optional(set);
  }
  return set_of;
}

/// Of unknown size: each is with the first of those that came before it in time that it is near.
std::vector<std::optional<std::size_t>> sets_near_the_first(const std::vector<EndsOfRank>& ranks,
                                                            const std::vector<std::size_t>& order) {
  std::vector<std::size_t> firsts;
  std::vector<std::optional<std::size_t>> set_of(ranks.size());
  for (const std::size_t i : order) {
    const auto from =
        firsts.end() - static_cast<std::ptrdiff_t>(std::min(firsts.size(), kNeighbours));
    const auto own = std::find_if(from, firsts.end(), [&](std::size_t first) {
      return apart(ranks[first], ranks[i]).has_value();
    });
    set_of[i] = own == firsts.end() ? i : *own;
    if (own == firsts.end()) {
      firsts.push_back(i);
    }
  }
  return set_of;
}

}  // namespace

std::vector<std::vector<std::int32_t>> ranks_that_end_together(const std::vector<EndsOfRank>& ranks,
                                                               std::int32_t size) {
  std::vector<std::size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::pair(ranks[i].ops.size(), middle_end(ranks[i]));
  });
  const auto set_of = size > 0 ? sets_of_nearest(ranks, order, static_cast<std::size_t>(size))
                               : sets_near_the_first(ranks, order);
  std::map<std::size_t, std::vector<std::int32_t>> sets;
  std::vector<std::vector<std::int32_t>> groups;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (set_of[i]) {
      sets[*set_of[i]].push_back(ranks[i].rank);
    } else {
      groups.push_back({ranks[i].rank});
    }
  }
  for (auto& [first, members] : sets) {
    std::ranges::sort(members);
    groups.push_back(std::move(members));
  }
  return groups;
}

}  // namespace lockstep::compare
