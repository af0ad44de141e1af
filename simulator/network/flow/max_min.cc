#include "simulator/network/flow/max_min.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/index.h"

namespace lockstep {

std::int64_t MaxMin::to_units(double value) const {
  LOCKSTEP_CHECK(value > 0 && value * units_ <= kMaxUnits, "a capacity is positive and in range");
  return std::max<std::int64_t>(1, std::llround(value * units_));
}

void MaxMin::reserve(std::size_t variables, std::size_t terms) {
  variables_.reserve(variables);
  elements_.reserve(terms);
}

std::int64_t MaxMin::bound_units(double bound) const {
  return bound * units_ < kMaxUnits ? to_units(bound) : kNone;
}

ConstraintId MaxMin::add_constraint(double capacity) {
  const ConstraintId id(constraints_.size());
  capacity_.push_back(to_units(capacity));
  constraints_.emplace_back();
  crowds_.emplace_back();
  constraints_.back().left = static_cast<Wide>(capacity_.back()) * kOne;
  return id;
}

void MaxMin::set_capacity(ConstraintId id, double capacity) {
  const std::int64_t old = std::exchange(capacity_[id.index()], to_units(capacity));
  constraints_[id.index()].left += static_cast<Wide>(capacity_[id.index()] - old) * kOne;
  mark_dirty(id.value);
}

VariableId MaxMin::add_variable(std::span<const Term> terms, double bound, bool active) {
  LOCKSTEP_CHECK(!terms.empty() && bound > 0, "a variable needs a constraint and a positive bound");
  std::int32_t id = static_cast<std::int32_t>(variables_.size());
  if (free_variables_.empty()) {
    variables_.emplace_back();
  } else {
    id = free_variables_.back();
    free_variables_.pop_back();
    variables_[at(id)] = {};
    if (at(id) < copies_.size()) {
      copies_[at(id)] = 1;
    }
  }
  const std::int32_t first = allocate_elements(terms.size());
  Variable& variable = variables_[at(id)];
  variable.bound = bound_units(bound);
  variable.first = first;
  variable.count = static_cast<std::int32_t>(terms.size());
  for (std::size_t i = 0; i < terms.size(); ++i) {
    LOCKSTEP_CHECK(terms[i].coefficient >= kMinCoefficient, "coefficients are at least 2^-20");
    const double weight = terms[i].coefficient * static_cast<double>(kOne);
    elements_[at(first) + i] = {std::llround(weight), terms[i].constraint.value, -1};
    largest_weight_ = std::max(largest_weight_, elements_[at(first) + i].weight);
  }
  if (active) {
    activate(VariableId(id));
  }
  return VariableId(id);
}

void MaxMin::add_term(VariableId id, Term term) {
  const std::int32_t old_first = variables_[id.index()].first;
  const std::int32_t count = variables_[id.index()].count;
  const std::int32_t first = allocate_elements(at(count) + 1);
  for (std::int32_t i = 0; i < count; ++i) {
    const Element element = elements_[at(old_first + i)];
    elements_[at(first + i)] = element;
    if (element.place >= 0) {
      crowds_[at(element.constraint)].users[at(element.place)].element = first + i;
    }
  }
  free_elements_[at(count)].push_back(old_first);
  Variable& variable = variables_[id.index()];
  variable.first = first;
  variable.count = count + 1;
  elements_[at(first + count)] = {std::llround(term.coefficient * static_cast<double>(kOne)),
                                  term.constraint.value, -1};
  largest_weight_ = std::max(largest_weight_, elements_[at(first + count)].weight);
  if (variable.active) {
    attach(id.value, first + count);
    Constraint& constraint = constraints_[term.constraint.index()];
    const Element& element = elements_[at(first + count)];
    constraint.left -= static_cast<Wide>(element.weight) * variable.rate;
    constraint.held += variable.rate == constraint.level ? element.weight : 0;
    fresh_.push_back(id.value);
  }
}

void MaxMin::set_bound(VariableId id, double bound) {
  LOCKSTEP_CHECK(bound > 0, "a bound is positive");
  Variable& variable = variables_[id.index()];
  const std::int64_t units = bound_units(bound);
  if (variable.bound != units) {
    variable.bound = units;
    if (variable.active) {
      fresh_.push_back(id.value);  // it is filled again
    }
  }
}

void MaxMin::attach(std::int32_t variable, std::int32_t element) {
  Element& term = elements_[at(element)];
  Crowd& crowd = crowds_[at(term.constraint)];
  crowd.weight = crowd.users.empty() || crowd.weight == term.weight ? term.weight : 0;
  term.place = static_cast<std::int32_t>(crowd.users.size());
  crowd.users.push_back({variable, element});
}

void MaxMin::detach(const Element& element) {
  std::vector<User>& users = crowds_[at(element.constraint)].users;
  users[at(element.place)] = users.back();
  elements_[at(users.back().element)].place = element.place;
  users.pop_back();
}

void MaxMin::activate(VariableId id) {
  Variable& variable = variables_[id.index()];
  LOCKSTEP_CHECK(!variable.active, "a variable is activated once");
  variable.active = true;
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    attach(id.value, e);
  }
  fresh_.push_back(id.value);
}

void MaxMin::deactivate(VariableId id) {
  Variable& variable = variables_[id.index()];
  LOCKSTEP_CHECK(variable.active, "only an active variable is deactivated");
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    Element& element = elements_[at(e)];
    detach(element);
    element.place = -1;
    Constraint& constraint = constraints_[at(element.constraint)];
    constraint.left += static_cast<Wide>(element.weight) * variable.rate;
    if (constraint.level != kNone) {  // whoever it limits may rise; no others can
      constraint.held -= variable.rate == constraint.level ? element.weight : 0;
      mark_dirty(element.constraint);
    }
  }
  variable.active = false;
  variable.rate = 0;
}

void MaxMin::set_copies(VariableId id, std::int32_t copies) {
  if (copies == 0) {
    deactivate(id);
    return;
  }
  if (copies_.size() <= id.index()) {
    copies_.resize(variables_.size(), 1);
  }
  const std::int64_t old = std::exchange(copies_[id.index()], copies);
  Variable& variable = variables_[id.index()];
  if (!variable.active && old == copies) {
    activate(id);
    return;
  }
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    Element& element = elements_[at(e)];
    const std::int64_t before = element.weight;
    element.weight = before / old * copies;
    largest_weight_ = std::max(largest_weight_, element.weight);
    if (!variable.active) {
      continue;
    }
    Crowd& crowd = crowds_[at(element.constraint)];
    if (crowd.weight != element.weight) {
      crowd.weight = crowd.users.size() == 1 ? element.weight : 0;
    }
    Constraint& constraint = constraints_[at(element.constraint)];
    constraint.left += static_cast<Wide>(before) * variable.rate;
    if (constraint.level != kNone) {  // as in deactivate()
      constraint.held -= variable.rate == constraint.level ? before : 0;
      mark_dirty(element.constraint);
    }
  }
  if (!variable.active) {
    activate(id);
  } else {  // all of them are new
    variable.rate = 0;
    fresh_.push_back(id.value);
  }
}

void MaxMin::fetch_ahead(std::span<const std::int32_t> variables, std::size_t i) const {
  constexpr std::size_t kStage = 4;  // from one miss to the next that depends on it
  const auto ahead = [&](std::size_t stages) -> const Variable* {
    const std::size_t place = i + stages * kStage;
    return place < variables.size() ? &variables_[at(variables[place])] : nullptr;
  };
  if (const Variable* variable = ahead(3)) {
    __builtin_prefetch(variable);
  }
  if (const Variable* variable = ahead(2)) {
    __builtin_prefetch(&elements_[at(variable->first)]);
  }
  if (const Variable* variable = ahead(1)) {
    for (std::int32_t e = variable->first; e < variable->first + variable->count; ++e) {
      const std::size_t constraint = at(elements_[at(e)].constraint);
      __builtin_prefetch(&crowds_[constraint]);
      __builtin_prefetch(&constraints_[constraint]);
    }
  }
}

void MaxMin::deactivate(std::span<const std::int32_t> variables) {
  constexpr std::size_t kStage = 8;  // from one miss to the next that depends on it
  const auto ahead = [&](std::size_t i, std::size_t stages) -> const Variable* {
    const std::size_t place = i + stages * kStage;
    return place < variables.size() ? &variables_[at(variables[place])] : nullptr;
  };
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (const Variable* variable = ahead(i, 3)) {
      __builtin_prefetch(variable);
    }
    if (const Variable* variable = ahead(i, 2)) {
      __builtin_prefetch(&elements_[at(variable->first)]);
    }
    if (const Variable* variable = ahead(i, 1)) {
      for (std::int32_t e = variable->first; e < variable->first + variable->count; ++e) {
        const Element& element = elements_[at(e)];
        const std::vector<User>& users = crowds_[at(element.constraint)].users;
        __builtin_prefetch(users.data() + element.place);
        // About the one that will fill its place: the lists shrink from the end.
        const std::size_t last = users.size() > kStage ? users.size() - kStage : 0;
        __builtin_prefetch(&elements_[at(users[last].element)]);
      }
    }
    deactivate(VariableId(variables[i]));
  }
}

void MaxMin::remove_variable(VariableId id) {
  Variable& variable = variables_[id.index()];
  if (variable.active) {
    deactivate(id);
  }
  free_elements_[at(variable.count)].push_back(variable.first);
  free_variables_.push_back(id.value);
}

std::int32_t MaxMin::allocate_elements(std::size_t count) {
  if (free_elements_.size() <= count) {
    free_elements_.resize(count + 1);
  }
  std::vector<std::int32_t>& free = free_elements_[count];
  if (!free.empty()) {
    const std::int32_t first = free.back();
    free.pop_back();
    return first;
  }
  LOCKSTEP_CHECK(elements_.size() + count < std::size_t{1} << 31, "too many terms for one system");
  const std::size_t first = elements_.size();
  elements_.resize(first + count);
  return static_cast<std::int32_t>(first);
}

void MaxMin::mark_dirty(std::int32_t constraint) {
  if (!constraints_[at(constraint)].dirty) {
    constraints_[at(constraint)].dirty = true;
    dirty_.push_back(constraint);
  }
}

}  // namespace lockstep
