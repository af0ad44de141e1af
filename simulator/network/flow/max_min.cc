#include "simulator/network/flow/max_min.h"

#include <algorithm>
#include <cmath>
#include <iterator>

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
    const Element& element = elements_[at(first + count)];
    constraint.load += static_cast<Wide>(element.weight) * variable.rate;
    constraint.level_weight += variable.rate == constraint.level ? element.weight : 0;
    fresh_.push_back(id.value);
  }
}

void MaxMin::attach(std::int32_t variable, std::int32_t element) {
  std::vector<User>& users = constraints_[at(elements_[at(element)].constraint)].users;
  elements_[at(element)].place = static_cast<std::int32_t>(users.size());
  users.push_back({variable, element, variables_[at(variable)].rate});
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
      constraint.level_weight -= variable.rate == constraint.level ? element.weight : 0;
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
  fill();
  commit();
#ifndef NDEBUG
  std::vector<std::int32_t> filled;
  std::ranges::transform(joined_, std::back_inserter(filled), &Joined::variable);
  const std::string violation = max_min_violation(*this, filled);
  LOCKSTEP_CHECK(violation.empty(), violation);
#endif
  return changed_;
}

void MaxMin::begin_epoch() {
  if (++epoch_ == 0) {  // the stamps have wrapped around
    epoch_ = 1;
    std::ranges::for_each(variables_, [](Variable& v) { v.joined = 0; });
    std::ranges::for_each(constraints_, [](Constraint& c) { c.reached = 0; });
  }
  touched_.clear();
  joined_.clear();
  links_.clear();
  pending_ = 0;
}

void MaxMin::set_rate(std::int32_t v, std::int64_t rate) {
  Variable& variable = variables_[at(v)];
  if (variable.rate == rate) {
    return;
  }
  variable.rate = rate;
  changed_.emplace_back(v);
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Element& element = elements_[at(e)];
    constraints_[at(element.constraint)].users[at(element.place)].rate = rate;
  }
}

/// A new variable that meets no other gets the smallest share at once. Most solves of a ring are
/// this.
bool MaxMin::fill_alone(std::int32_t v) {
  const Variable& variable = variables_[at(v)];
  std::int64_t rate = variable.bound;
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Constraint& constraint = constraints_[at(elements_[at(e)].constraint)];
    if (constraint.users.size() != 1) {
      return false;
    }
    const Wide capacity = static_cast<Wide>(constraint.capacity) * kOne;
    rate = std::min(rate, divide(capacity, elements_[at(e)].weight));
  }
  set_rate(v, rate);
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    Constraint& constraint = constraints_[at(elements_[at(e)].constraint)];
    const std::int64_t weight = elements_[at(e)].weight;
    constraint.load = static_cast<Wide>(weight) * rate;
    const bool limits = divide(static_cast<Wide>(constraint.capacity) * kOne, weight) == rate;
    constraint.level = limits ? rate : kNone;
    constraint.level_weight = limits ? weight : 0;
  }
  ++filled_variables_;
  return true;
}

/// What the pass begins with: new variables, and the constraints that have changed.
void MaxMin::seed() {
  joining_.clear();
  for (const std::int32_t v : fresh_) {
    // Each is alone, joins, or is the second mention of one that did.
    if (variables_[at(v)].active && !fill_alone(v)) {
      joining_.push_back(v);
    }
  }
  fresh_.clear();
  for (const std::int32_t c : dirty_) {
    Constraint& constraint = constraints_[at(c)];
    constraint.dirty = false;
    if (constraint.level_weight == 0) {
      constraint.level = kNone;  // those that it limited are gone
    }
    if (constraint.load > static_cast<Wide>(constraint.capacity) * kOne) {
      for (const User& user : constraint.users) {  // the capacity was cut
        joining_.push_back(user.variable);
      }
    }
    if (constraint.level != kNone) {
      touch(c);
    }
  }
  dirty_.clear();
  std::ranges::for_each(joining_, [&](std::int32_t v) { join(v); });
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    enqueue(static_cast<std::int32_t>(i));
  }
}

std::int32_t MaxMin::touch(std::int32_t c) {
  Constraint& constraint = constraints_[at(c)];
  if (constraint.reached != epoch_) {
    constraint.reached = epoch_;
    constraint.touched = static_cast<std::int32_t>(touched_.size());
    Touched& touched = touched_.emplace_back();
    touched.left = static_cast<Wide>(constraint.capacity) * kOne - constraint.load;
    touched.level = constraint.level;
    touched.held = constraint.level == kNone ? 0 : constraint.level_weight;
    touched.constraint = c;
    touched.users = static_cast<std::int32_t>(constraint.users.size());
    pending_ += touched.held > 0 ? 1 : 0;
  }
  return constraint.touched;
}

void MaxMin::join(std::int32_t v) {
  Variable& variable = variables_[at(v)];
  if (variable.joined == epoch_) {
    return;
  }
  variable.joined = epoch_;
  const auto self = static_cast<std::int32_t>(joined_.size());
  joined_.push_back({0, v, static_cast<std::int32_t>(links_.size()), variable.count, false});
  ++pending_;
  if (variable.bound != kNone) {
    candidates_.push({variable.bound, ~self});
  }
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Element& element = elements_[at(e)];
    const std::int32_t index = touch(element.constraint);
    Touched& touched = touched_[at(index)];
    const bool was_pending = touched.held > 0 && !touched.settled;
    touched.left += static_cast<Wide>(element.weight) * variable.rate;
    touched.held -= variable.rate == touched.level ? element.weight : 0;
    touched.open += element.weight;
    touched.settled = false;
    pending_ += (touched.held > 0 ? 1 : 0) - (was_pending ? 1 : 0);
    ++touched.joined;
    links_.push_back({element.weight, self, index, touched.links});
    touched.links = static_cast<std::int32_t>(links_.size()) - 1;
  }
}

std::int64_t MaxMin::divide(Wide left, std::int64_t weight) {
  if (left <= 0) {
    return 0;
  }
  if ((weight & (kOne - 1)) == 0) {  // whole coefficients: floor(floor(a / b) / c) = floor(a / bc)
    return static_cast<std::int64_t>(left >> 40) / (weight >> 40);
  }
  return static_cast<std::int64_t>(left / weight);
}

/// The level at which a constraint is to be looked at: where it fills up with the open variables
/// or, if some still count on it, where it did before.
std::int64_t MaxMin::key_of(const Touched& touched) {
  const std::int64_t share = touched.open > 0 ? divide(touched.left, touched.open) : kNone;
  return touched.held > 0 && !touched.settled ? std::min(share, touched.level) : share;
}

void MaxMin::enqueue(std::int32_t index) {
  Touched& touched = touched_[at(index)];
  const std::int64_t key = key_of(touched);
  if (key < touched.queued) {
    touched.queued = key;
    candidates_.push({key, index});
  }
}

/// Takes the candidates of the lowest level into tied_; kNone if there are none. A key may be
/// stale, but only too low: while others are filled the share of a constraint never falls (each
/// takes at most that share from it, and rounding down keeps this).
std::int64_t MaxMin::next_level() {
  tied_.clear();
  std::int64_t level = kNone;
  while (!candidates_.empty() && candidates_.top().key <= level) {
    const Candidate candidate = candidates_.top();
    candidates_.pop();
    if (candidate.index >= 0) {
      Touched& touched = touched_[at(candidate.index)];
      if (candidate.key != touched.queued) {
        continue;  // a newer entry stands for it
      }
      touched.queued = kNone;
      if (key_of(touched) != candidate.key) {
        enqueue(candidate.index);
        continue;
      }
    } else if (joined_[at(~candidate.index)].fixed) {
      continue;
    }
    level = candidate.key;
    tied_.push_back(candidate.index);
  }
  return level;
}

/// Looks for the variables that were left as they were and break the certificate at this level.
void MaxMin::find_joining(std::int64_t level) {
  joining_.clear();
  for (const std::int32_t index : tied_) {
    if (index < 0) {
      continue;
    }
    Touched& touched = touched_[at(index)];
    touched.equal = level == touched.level ? touched.held : 0;
    if (touched.joined == touched.users) {
      continue;
    }
    if (touched.open == 0 || divide(touched.left, touched.open) > level) {
      find_held(touched, level);
    } else if (level < touched.level) {
      find_above(touched, level);
    }
  }
}

/// The constraint fills up below its old level: whoever is above that joins.
void MaxMin::find_above(Touched& touched, std::int64_t level) {
  for (const User& user : constraints_[at(touched.constraint)].users) {
    if (user.rate >= level && variables_[at(user.variable)].joined != epoch_) {
      if (user.rate > level) {
        joining_.push_back(user.variable);
      } else {
        touched.equal += elements_[at(user.element)].weight;
      }
    }
  }
}

/// The level is that of variables which the constraint limited: if there is room above, they join.
void MaxMin::find_held(Touched& touched, std::int64_t level) {
  const Wide left = touched.left + static_cast<Wide>(touched.held) * level;
  if (divide(left, touched.open + touched.held) == level) {
    return;
  }
  for (const User& user : constraints_[at(touched.constraint)].users) {
    if (user.rate == level && variables_[at(user.variable)].joined != epoch_) {
      joining_.push_back(user.variable);
    }
  }
}

void MaxMin::let_join() {
  std::size_t link = links_.size();
  std::ranges::for_each(joining_, [&](std::int32_t v) { join(v); });
  for (; link < links_.size(); ++link) {
    enqueue(links_[link].touched);
  }
}

/// Progressive filling, level by level, all candidates of a level together.
void MaxMin::fill() {
  while (pending_ > 0) {
    const std::int64_t level = next_level();
    LOCKSTEP_CHECK(level != kNone, "every variable is fixed by a constraint or its bound");
    find_joining(level);
    if (!joining_.empty()) {
      let_join();
      for (const std::int32_t index : tied_) {
        if (index < 0) {
          candidates_.push({level, index});
        } else {
          enqueue(index);
        }
      }
      continue;
    }
    for (const std::int32_t index : tied_) {
      if (index < 0) {
        fix(~index, level);
        continue;
      }
      Touched& touched = touched_[at(index)];
      pending_ -= touched.held > 0 && !touched.settled ? 1 : 0;
      touched.new_level = level;
      touched.settled = true;
      for (std::int32_t link = touched.links; link >= 0; link = links_[at(link)].next) {
        fix(links_[at(link)].joined, level);
      }
    }
  }
  candidates_.clear();
}

void MaxMin::fix(std::int32_t index, std::int64_t rate) {
  Joined& joined = joined_[at(index)];
  if (joined.fixed) {
    return;
  }
  joined.fixed = true;
  joined.rate = rate;
  --pending_;
  for (std::int32_t i = joined.first; i < joined.first + joined.count; ++i) {
    const Link& link = links_[at(i)];
    Touched& touched = touched_[at(link.touched)];
    touched.left -= static_cast<Wide>(link.weight) * rate;
    touched.open -= link.weight;
    touched.last_weight = touched.last_level == rate ? touched.last_weight : 0;
    touched.last_weight += link.weight;
    touched.last_level = rate;
  }
}

void MaxMin::commit() {
  filled_variables_ += std::ssize(joined_);
  for (const Touched& touched : touched_) {
    Constraint& constraint = constraints_[at(touched.constraint)];
    constraint.load = static_cast<Wide>(constraint.capacity) * kOne - touched.left;
    constraint.level = touched.new_level;
    constraint.level_weight =
        touched.equal + (touched.last_level == touched.new_level ? touched.last_weight : 0);
    if (constraint.level_weight == 0) {
      constraint.level = kNone;
    }
  }
  for (const Joined& joined : joined_) {
    set_rate(joined.variable, joined.rate);
  }
}

}  // namespace lockstep
