#include "simulator/network/flow/max_min.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "simulator/network/flow/max_min_certificate.h"

namespace lockstep {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

std::int64_t MaxMin::to_units(double value) const {
  LOCKSTEP_CHECK(value > 0 && value * units_ <= kMaxUnits, "a capacity is positive and in range");
  return std::max<std::int64_t>(1, std::llround(value * units_));
}

ConstraintId MaxMin::add_constraint(double capacity) {
  const ConstraintId id(constraints_.size());
  constraints_.emplace_back();
  constraints_.back().capacity = to_units(capacity);
  return id;
}

void MaxMin::set_capacity(ConstraintId constraint, double capacity) {
  constraints_[constraint.index()].capacity = to_units(capacity);
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
    variables_[at(id)] = {};
  }
  const std::int32_t first = allocate_elements(terms.size());
  Variable& variable = variables_[at(id)];
  variable.bound = bound * units_ < kMaxUnits ? to_units(bound) : kNone;
  variable.first = first;
  variable.count = static_cast<std::int32_t>(terms.size());
  for (std::size_t i = 0; i < terms.size(); ++i) {
    LOCKSTEP_CHECK(terms[i].coefficient >= kMinCoefficient, "coefficients are at least 2^-20");
    const double weight = terms[i].coefficient * static_cast<double>(kOne);
    elements_[at(first) + i] = {std::llround(weight), terms[i].constraint.value, -1};
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
      constraints_[at(element.constraint)].users[at(element.place)].element = first + i;
    }
  }
  free_elements_[at(count)].push_back(old_first);
  Variable& variable = variables_[id.index()];
  variable.first = first;
  variable.count = count + 1;
  elements_[at(first + count)] = {std::llround(term.coefficient * static_cast<double>(kOne)),
                                  term.constraint.value, -1};
  if (variable.active) {
    attach(id.value, first + count);
    Constraint& constraint = constraints_[term.constraint.index()];
    constraint.load += static_cast<Wide>(elements_[at(first + count)].weight) * variable.rate;
    fresh_.push_back(id.value);
  }
}

void MaxMin::attach(std::int32_t variable, std::int32_t element) {
  std::vector<User>& users = constraints_[at(elements_[at(element)].constraint)].users;
  elements_[at(element)].place = static_cast<std::int32_t>(users.size());
  users.push_back({variable, element});
}

void MaxMin::detach(const Element& element) {
  std::vector<User>& users = constraints_[at(element.constraint)].users;
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
    constraint.load -= static_cast<Wide>(element.weight) * variable.rate;
    if (constraint.level != kNone) {  // whoever it limits may rise; no others can
      mark_dirty(element.constraint);
    }
  }
  variable.active = false;
  variable.rate = 0;
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

std::span<const VariableId> MaxMin::solve() {
  changed_.clear();
  if (dirty_.empty() && fresh_.empty()) {
    return {};
  }
  begin_epoch();
  seed();
  if (!set_.empty()) {
    do {
      ++rounds_;
      filled_variables_ += std::ssize(set_);
      fill();
    } while (!certify());
    commit();
#ifndef NDEBUG
    const std::string violation = max_min_violation(*this, set_);
    LOCKSTEP_CHECK(violation.empty(), violation);
#endif
  }
  return changed_;
}

void MaxMin::begin_epoch() {
  constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max() - (1U << 30);
  if (epoch_ >= kLast || round_ >= kLast) {  // the stamps would wrap around
    std::ranges::for_each(variables_, [](Variable& v) { v.reached = v.fixed = 0; });
    std::ranges::for_each(constraints_, [](Constraint& c) { c.reached = 0; });
    epoch_ = round_ = 0;
  }
  ++epoch_;
  set_.clear();
  touched_.clear();
  links_.clear();
}

/// Who is filled again at first: new variables, and those that a changed constraint limits.
void MaxMin::seed() {
  for (const std::int32_t c : dirty_) {
    Constraint& constraint = constraints_[at(c)];
    constraint.dirty = false;
    if (constraint.load > static_cast<Wide>(constraint.capacity) * kOne) {
      constraint.level = 0;  // the capacity was cut: all of its variables
    }
  }
  for (const std::int32_t c : dirty_) {
    Constraint& constraint = constraints_[at(c)];
    if (constraint.level == kNone) {
      continue;
    }
    const std::size_t before = set_.size();
    for (const User& user : constraint.users) {
      if (variables_[at(user.variable)].rate >= constraint.level) {
        refill(user.variable);
      }
    }
    if (set_.size() == before && constraint.reached != epoch_) {
      constraint.level = kNone;  // those that it limited are gone
    }
  }
  dirty_.clear();
  for (const std::int32_t v : fresh_) {
    if (variables_[at(v)].active) {
      refill(v);
    }
  }
  fresh_.clear();
}

void MaxMin::refill(std::int32_t v) {
  Variable& variable = variables_[at(v)];
  if (variable.reached == epoch_) {
    return;
  }
  variable.reached = epoch_;
  set_.push_back(v);
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Element& element = elements_[at(e)];
    Constraint& constraint = constraints_[at(element.constraint)];
    if (constraint.reached != epoch_) {
      constraint.reached = epoch_;
      constraint.weight = 0;
      constraint.refilled = 0;
      constraint.links = -1;
      touched_.push_back(element.constraint);
    }
    constraint.load -= static_cast<Wide>(element.weight) * variable.rate;
    constraint.weight += element.weight;
    ++constraint.refilled;
    links_.push_back({v, constraint.links});
    constraint.links = static_cast<std::int32_t>(links_.size()) - 1;
  }
}

/// The rate that the open variables of a constraint get if it alone limits them.
std::int64_t MaxMin::share_of(const Constraint& c) {
  const Wide left = static_cast<Wide>(c.capacity) * kOne - c.used;
  if (left <= 0) {
    return 0;
  }
  if ((c.open & (kOne - 1)) == 0) {  // whole coefficients: floor(floor(a / b) / c) = floor(a / bc)
    return static_cast<std::int64_t>(left >> 40) / (c.open >> 40);
  }
  return static_cast<std::int64_t>(left / c.open);
}

void MaxMin::fix(std::int32_t v, std::int64_t rate) {
  Variable& variable = variables_[at(v)];
  variable.trial = rate;
  variable.fixed = round_;
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Element& element = elements_[at(e)];
    Constraint& constraint = constraints_[at(element.constraint)];
    constraint.used += static_cast<Wide>(element.weight) * rate;
    constraint.open -= element.weight;
  }
}

/// A lone variable: its rate is the smallest share. Most solves of a ring end here.
bool MaxMin::fill_single() {
  if (set_.size() != 1) {
    return false;
  }
  std::int64_t rate = variables_[at(set_[0])].bound;
  const bool bounded = rate != kNone;
  for (const std::int32_t c : touched_) {
    Constraint& constraint = constraints_[at(c)];
    constraint.used = constraint.load;
    constraint.open = constraint.weight;
    constraint.trial = share_of(constraint);
    rate = std::min(rate, constraint.trial);
  }
  fix(set_[0], rate);
  for (const std::int32_t c : touched_) {
    Constraint& constraint = constraints_[at(c)];
    if (constraint.trial != rate || (bounded && rate == variables_[at(set_[0])].bound)) {
      constraint.trial = kNone;
    }
  }
  return true;
}

/// Progressive filling of the set, level by level, all constraints of a level together. The share
/// of a constraint never falls while others are filled (each takes at most that share from it, and
/// rounding down keeps this), so a candidate's key is a lower bound that is mended when it comes
/// up.
void MaxMin::fill() {
  ++round_;
  if (fill_single()) {
    return;
  }
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.share != b.share ? a.share > b.share : a.constraint > b.constraint;
  };
  candidates_.clear();
  for (const std::int32_t c : touched_) {
    Constraint& constraint = constraints_[at(c)];
    constraint.used = constraint.load;
    constraint.open = constraint.weight;
    constraint.trial = kNone;
    candidates_.push_back({share_of(constraint), c});
  }
  std::make_heap(candidates_.begin(), candidates_.end(), later);
  bounded_.clear();
  for (const std::int32_t v : set_) {
    if (variables_[at(v)].bound != kNone) {
      bounded_.push_back(v);
    }
  }
  std::ranges::sort(bounded_, {}, [&](std::int32_t v) { return variables_[at(v)].bound; });
  std::size_t next_bounded = 0;

  std::size_t left = set_.size();
  const auto pop = [&] {
    std::pop_heap(candidates_.begin(), candidates_.end(), later);
    candidates_.pop_back();
  };
  while (left > 0) {
    // Bring the smallest share up, then everything that fills up at the same level.
    std::int64_t level = kNone;
    tied_.clear();
    while (!candidates_.empty() && candidates_.front().share <= level) {
      const std::int32_t c = candidates_.front().constraint;
      if (constraints_[at(c)].open == 0) {
        pop();
        continue;
      }
      const std::int64_t share = share_of(constraints_[at(c)]);
      pop();
      if (share <= level) {
        if (share < level) {
          for (const std::int32_t other : tied_) {
            candidates_.push_back({level, other});
            std::push_heap(candidates_.begin(), candidates_.end(), later);
          }
          tied_.clear();
          level = share;
        }
        tied_.push_back(c);
      } else {
        candidates_.push_back({share, c});
        std::push_heap(candidates_.begin(), candidates_.end(), later);
      }
    }
    bool bound_met = false;
    while (next_bounded < bounded_.size()) {
      const std::int32_t v = bounded_[next_bounded];
      const Variable& variable = variables_[at(v)];
      if (variable.fixed != round_) {
        if (variable.bound > level) {
          break;
        }
        fix(v, variable.bound);
        --left;
        bound_met = true;
      }
      ++next_bounded;
    }
    if (bound_met) {  // shares have grown
      for (const std::int32_t c : tied_) {
        candidates_.push_back({level, c});
        std::push_heap(candidates_.begin(), candidates_.end(), later);
      }
      continue;
    }
    LOCKSTEP_CHECK(!tied_.empty(), "every variable has a constraint");
    for (const std::int32_t c : tied_) {
      constraints_[at(c)].trial = level;
      for (std::int32_t link = constraints_[at(c)].links; link >= 0; link = links_[at(link)].next) {
        if (variables_[at(links_[at(link)].variable)].fixed != round_) {
          fix(links_[at(link)].variable, level);
          --left;
        }
      }
    }
  }
}

/// Tests the certificate of the constraints touched; whoever breaks it joins the set. True when it
/// holds.
bool MaxMin::certify() {
  joining_.clear();
  for (const std::int32_t c : touched_) {
    Constraint& constraint = constraints_[at(c)];
    if (at(constraint.refilled) == constraint.users.size()) {
      continue;  // nobody was left as it was
    }
    if (constraint.trial != kNone &&
        (constraint.level == kNone || constraint.trial < constraint.level)) {
      certify_lower(constraint);
    }
    if (constraint.level != kNone && constraint.trial != constraint.level) {
      certify_held(constraint);
    }
  }
  std::ranges::for_each(joining_, [&](std::int32_t v) { refill(v); });
  return joining_.empty();
}

/// The constraint now limits to `trial`: nobody on it may be above.
void MaxMin::certify_lower(const Constraint& constraint) {
  for (const User& user : constraint.users) {
    const Variable& variable = variables_[at(user.variable)];
    if (variable.reached != epoch_ && variable.rate > constraint.trial) {
      joining_.push_back(user.variable);
    }
  }
}

/// The constraint limited variables to `level` that were left as they were: they stay only if
/// nobody is above them and what is unused is less than they could share.
void MaxMin::certify_held(Constraint& constraint) {
  std::int64_t largest = 0, held = 0, level_weight = 0;
  for (std::int32_t link = constraint.links; link >= 0; link = links_[at(link)].next) {
    largest = std::max(largest, variables_[at(links_[at(link)].variable)].trial);
  }
  for (const User& user : constraint.users) {
    const Variable& variable = variables_[at(user.variable)];
    const std::int64_t weight = elements_[at(user.element)].weight;
    if (variable.reached != epoch_) {
      held += variable.rate == constraint.level ? weight : 0;
    } else {
      level_weight += variable.trial == constraint.level ? weight : 0;
    }
  }
  if (held == 0) {
    return;
  }
  const Wide unused = static_cast<Wide>(constraint.capacity) * kOne - constraint.used;
  if (constraint.trial == kNone && largest <= constraint.level && unused >= 0 &&
      unused < static_cast<Wide>(held) + level_weight) {
    constraint.trial = constraint.level;
    return;
  }
  for (const User& user : constraint.users) {
    const Variable& variable = variables_[at(user.variable)];
    if (variable.reached != epoch_ && variable.rate == constraint.level) {
      joining_.push_back(user.variable);
    }
  }
}

void MaxMin::commit() {
  for (const std::int32_t c : touched_) {
    Constraint& constraint = constraints_[at(c)];
    constraint.load = constraint.used;
    constraint.level = constraint.trial;
  }
  for (const std::int32_t v : set_) {
    Variable& variable = variables_[at(v)];
    if (variable.rate != variable.trial) {
      variable.rate = variable.trial;
      changed_.emplace_back(v);
    }
  }
}

}  // namespace lockstep
