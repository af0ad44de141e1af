#include "simulator/network/flow/max_min_certificate.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace lockstep {
namespace {

struct Load {
  double used = 0;
  double largest = 0;
};

Load load_of(const MaxMin& system, ConstraintId constraint) {
  Load load;
  for (const MaxMin::User& user : system.users(constraint)) {
    const double rate = system.rate(VariableId(user.variable));
    load.used += system.coefficient(user) * rate;
    load.largest = std::max(load.largest, rate);
  }
  return load;
}

}  // namespace

std::string max_min_violation(const MaxMin& system, std::span<const std::int32_t> variables,
                              double tolerance) {
  std::map<std::int32_t, Load> loads;
  for (const std::int32_t v : variables) {
    const double rate = system.rate(VariableId(v));
    if (!(rate > 0)) {
      return fmt::format("variable {} has rate {}", v, rate);
    }
    bool limited = rate == system.bound(VariableId(v));
    if (rate > system.bound(VariableId(v))) {
      return fmt::format("variable {} has rate {} above its bound {}", v, rate,
                         system.bound(VariableId(v)));
    }
    for (const MaxMin::Element& element : system.elements(VariableId(v))) {
      const ConstraintId constraint(element.constraint);
      const double capacity = system.capacity(constraint);
      const auto [known, fresh] = loads.try_emplace(element.constraint);
      if (fresh) {
        known->second = load_of(system, constraint);
      }
      const Load& load = known->second;
      if (load.used > capacity * (1 + tolerance)) {
        return fmt::format("constraint {} carries {} of {}", element.constraint, load.used,
                           capacity);
      }
      limited = limited ||
                (load.used >= capacity * (1 - tolerance) && rate >= load.largest * (1 - tolerance));
    }
    if (!limited) {
      return fmt::format("variable {} at rate {} is limited by no bound and no constraint", v,
                         rate);
    }
  }
  return {};
}

}  // namespace lockstep
