#include "simulator/network/flow/max_min_certificate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lockstep {
namespace {

__extension__ using Wide = __int128;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// The lowest level at which the constraint is full with its users, if those above were there.
std::int64_t full_level(const MaxMin& system, ConstraintId constraint) {
  std::vector<std::pair<std::int64_t, std::int64_t>> users;  // rate, weight
  Wide left = static_cast<Wide>(system.capacity_units(constraint)) * MaxMin::kOne;
  Wide weight = 0;
  for (const MaxMin::User& user : system.users(constraint)) {
    users.emplace_back(system.rate_units(VariableId(user.variable)), system.weight(user));
    weight += users.back().second;
  }
  std::ranges::sort(users);
  for (const auto& [rate, own] : users) {
    if (left < (rate + 1) * weight) {
      return left < 0 ? -1 : static_cast<std::int64_t>(left / weight);
    }
    left -= static_cast<Wide>(rate) * own;
    weight -= own;
  }
  return kNever;
}

double load(const MaxMin& system, ConstraintId constraint) {
  double load = 0;
  for (const MaxMin::User& user : system.users(constraint)) {
    load += system.coefficient(user) * system.rate(VariableId(user.variable));
  }
  return load;
}

}  // namespace

std::string max_min_violation(const MaxMin& system, std::span<const std::int32_t> variables) {
  std::map<std::int32_t, std::int64_t> levels;  // by constraint
  for (const std::int32_t v : variables) {
    const double rate = system.rate(VariableId(v)), bound = system.bound(VariableId(v));
    if (!(rate > 0)) {
      return fmt::format("variable {} has rate {}", v, rate);
    }
    if (rate > bound) {
      return fmt::format("variable {} has rate {} above its bound {}", v, rate, bound);
    }
    bool limited = rate == bound;
    for (const MaxMin::Element& element : system.elements(VariableId(v))) {
      const ConstraintId constraint(element.constraint);
      const auto [known, fresh] = levels.try_emplace(element.constraint);
      if (fresh) {
        known->second = full_level(system, constraint);
      }
      const std::int64_t units = system.rate_units(VariableId(v));
      if (units > known->second) {
        return fmt::format(
            "constraint {} carries {} of {}; variable {} has rate {} there, of {} units where it "
            "is full at {}",
            element.constraint, load(system, constraint), system.capacity(constraint), v, rate,
            units, known->second);
      }
      limited = limited || units == known->second;
    }
    if (!limited) {
      return fmt::format("variable {} at rate {} is limited by no bound and no constraint", v,
                         rate);
    }
  }
  return {};
}

}  // namespace lockstep
