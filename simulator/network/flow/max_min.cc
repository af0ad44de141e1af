#include "simulator/network/flow/max_min.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "simulator/network/flow/max_min_certificate.h"

namespace lockstep {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

ConstraintId MaxMin::add_constraint(double capacity) {
  const ConstraintId id(constraints_.size());
  constraints_.emplace_back();
  set_capacity(id, capacity);
  return id;
}

void MaxMin::set_capacity(ConstraintId constraint, double capacity) {
  LOCKSTEP_CHECK(capacity > 0 && std::isfinite(capacity), "a capacity is positive and finite");
  constraints_[constraint.index()].capacity = capacity;
  mark_dirty(constraint.value);
}

VariableId MaxMin::add_variable(std::span<const Term> terms, double bound, bool active) {
  LOCKSTEP_CHECK(!terms.empty() && bound > 0, "a variable needs a constraint and a positive bound");
  std::int32_t id = static_cast<std::int32_t>(variables_.size());
  if (free_variables_.empty()) {
    variables_.emplace_back();
  } else {
    id = free_variables_.back();
    free_variables_.pop_back();
  }
  const std::int32_t first = allocate_elements(terms.size());
  Variable& variable = variables_[at(id)];
  variable.rate = 0;
  variable.bound = bound;
  variable.first = first;
  variable.count = static_cast<std::int32_t>(terms.size());
  variable.active = false;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    LOCKSTEP_CHECK(terms[i].coefficient >= kMinCoefficient, "coefficients are at least 2^-20");
    elements_[at(first) + i] = {terms[i].coefficient, terms[i].constraint.value, -1};
  }
  if (active) {
    activate(VariableId(id));
  }
  return VariableId(id);
}

void MaxMin::activate(VariableId id) {
  Variable& variable = variables_[id.index()];
  LOCKSTEP_CHECK(!variable.active, "a variable is activated once");
  variable.active = true;
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    Element& element = elements_[at(e)];
    std::vector<User>& users = constraints_[at(element.constraint)].users;
    element.place = static_cast<std::int32_t>(users.size());
    users.push_back({id.value, e});
    mark_dirty(element.constraint);
  }
}

void MaxMin::remove_variable(VariableId id) {
  Variable& variable = variables_[id.index()];
  if (variable.active) {
    for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
      const Element& element = elements_[at(e)];
      std::vector<User>& users = constraints_[at(element.constraint)].users;
      users[at(element.place)] = users.back();
      elements_[at(users.back().element)].place = element.place;
      users.pop_back();
      mark_dirty(element.constraint);
    }
  }
  variable.active = false;
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

std::span<const VariableId> MaxMin::solve() {
  changed_.clear();
  if (++epoch_ == 0) {  // the stamps have wrapped around
    epoch_ = 1;
    std::for_each(variables_.begin(), variables_.end(), [](Variable& v) { v.reached = 0; });
    std::for_each(constraints_.begin(), constraints_.end(), [](Constraint& c) { c.reached = 0; });
  }
  for (const std::int32_t seed : dirty_) {
    constraints_[at(seed)].dirty = false;
    if (constraints_[at(seed)].reached != epoch_) {
      collect_component(seed);
      fill_component();
    }
  }
  dirty_.clear();
  return changed_;
}

void MaxMin::collect_component(std::int32_t seed) {
  component_constraints_.assign(1, seed);
  component_variables_.clear();
  constraints_[at(seed)].reached = epoch_;
  for (std::size_t next = 0; next < component_constraints_.size(); ++next) {
    Constraint& constraint = constraints_[at(component_constraints_[next])];
    constraint.open = static_cast<std::int32_t>(constraint.users.size());
    constraint.spare = constraint.capacity;
    constraint.level = constraint.level_weight = constraint.weight = 0;
    for (const User& user : constraint.users) {
      constraint.weight += coefficient(user);
      Variable& variable = variables_[at(user.variable)];
      if (variable.reached == epoch_) {
        continue;
      }
      variable.reached = epoch_;
      variable.fixed = false;
      component_variables_.push_back(user.variable);
      for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
        const std::int32_t other = elements_[at(e)].constraint;
        if (constraints_[at(other)].reached != epoch_) {
          constraints_[at(other)].reached = epoch_;
          component_constraints_.push_back(other);
        }
      }
    }
  }
}

/// The rate all open variables of a constraint would get if it alone limited them.
double MaxMin::share_of(const Constraint& c) {
  const double left = std::max(0.0, c.spare - c.level * c.level_weight);
  // Rounding must not take the weight below what the open variables weigh at least.
  return left / std::max(c.weight, kMinCoefficient * c.open);
}

void MaxMin::fix(std::int32_t id, double rate) {
  Variable& variable = variables_[at(id)];
  if (variable.rate != rate) {
    variable.rate = rate;
    changed_.emplace_back(id);
  }
  variable.fixed = true;
  --open_variables_;
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Element& element = elements_[at(e)];
    Constraint& c = constraints_[at(element.constraint)];
    if (c.level != rate) {
      c.spare -= c.level * c.level_weight;
      c.level = rate;
      c.level_weight = 0;
    }
    c.level_weight += element.coefficient;
    c.weight -= element.coefficient;
    --c.open;
  }
}

/// Progressive filling. The share of a constraint never falls while others are filled (each takes
/// at most that share from it), so a candidate's key is a lower bound that is mended when the
/// candidate is the smallest.
void MaxMin::fill_component() {
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.share != b.share ? a.share > b.share : a.constraint > b.constraint;
  };
  candidates_.clear();
  for (const std::int32_t c : component_constraints_) {
    if (constraints_[at(c)].open > 0) {
      candidates_.push_back({share_of(constraints_[at(c)]), c});
    }
  }
  std::make_heap(candidates_.begin(), candidates_.end(), later);

  bounded_.clear();
  for (const std::int32_t v : component_variables_) {
    if (variables_[at(v)].bound != kUnbounded) {
      bounded_.push_back(v);
    }
  }
  std::sort(bounded_.begin(), bounded_.end(), [&](std::int32_t a, std::int32_t b) {
    const double x = variables_[at(a)].bound, y = variables_[at(b)].bound;
    return x != y ? x < y : a < b;
  });
  std::size_t next_bounded = 0;

  open_variables_ = component_variables_.size();
  while (open_variables_ > 0) {
    Candidate& smallest = candidates_.front();
    Constraint& constraint = constraints_[at(smallest.constraint)];
    const double share = constraint.open > 0 ? share_of(constraint) : kUnbounded;
    if (share > smallest.share) {
      std::pop_heap(candidates_.begin(), candidates_.end(), later);
      if (constraint.open > 0) {
        candidates_.back().share = share;
        std::push_heap(candidates_.begin(), candidates_.end(), later);
      } else {
        candidates_.pop_back();
      }
      continue;
    }
    while (next_bounded < bounded_.size() && variables_[at(bounded_[next_bounded])].fixed) {
      ++next_bounded;
    }
    if (next_bounded < bounded_.size()) {
      const std::int32_t v = bounded_[next_bounded];
      if (variables_[at(v)].bound <= share) {
        fix(v, variables_[at(v)].bound);
        continue;
      }
    }
    for (const User& user : constraint.users) {
      if (!variables_[at(user.variable)].fixed) {
        fix(user.variable, share);
      }
    }
  }
#ifndef NDEBUG
  const std::string violation = max_min_violation(*this, component_variables_);
  LOCKSTEP_CHECK(violation.empty(), violation);
#endif
}

}  // namespace lockstep
