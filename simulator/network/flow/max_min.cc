#include "simulator/network/flow/max_min.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "simulator/network/flow/give_back.h"
#include "simulator/network/flow/max_min_certificate.h"

namespace lockstep {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

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
  std::vector<User>& users = crowds_[at(elements_[at(element)].constraint)].users;
  elements_[at(element)].place = static_cast<std::int32_t>(users.size());
  users.push_back({variable, element});
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

std::span<const VariableId> MaxMin::solve() {
  give_back(changed_);
  if (dirty_.empty() && fresh_.empty()) {
    return {};
  }
  begin_epoch();
  seed();
  fill();
  commit();
#ifndef NDEBUG
  check_certificate();
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
  give_back(joined_);
  pending_ = 0;
}

/// A new variable that meets no other gets the smallest share at once. Most solves of a ring are
/// this.
bool MaxMin::fill_alone(std::int32_t v) {
  Variable& variable = variables_[at(v)];
  std::int64_t rate = variable.bound;
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Element& element = elements_[at(e)];
    if (crowds_[at(element.constraint)].users.size() != 1) {
      return false;
    }
    const Wide capacity = static_cast<Wide>(capacity_[at(element.constraint)]) * kOne;
    rate = std::min(rate, divide(capacity, element.weight));
  }
  if (variable.rate != rate) {
    variable.rate = rate;
    changed_.emplace_back(v);
  }
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Element& element = elements_[at(e)];
    Constraint& constraint = constraints_[at(element.constraint)];
    const Wide capacity = static_cast<Wide>(capacity_[at(element.constraint)]) * kOne;
    constraint.left = capacity - static_cast<Wide>(element.weight) * rate;
    const bool limits = divide(capacity, element.weight) == rate;
    constraint.level = limits ? rate : kNone;
    constraint.held = limits ? element.weight : 0;
    constraint.dirty = false;  // nobody else is there to mind
  }
  ++filled_variables_;
  return true;
}

/// What the pass begins with: new variables, and the constraints that have changed.
void MaxMin::seed() {
  joining_.clear();
  joining_.swap(fresh_);
  // Each is alone, joins, or is the second mention of one that did.
  std::erase_if(joining_,
                [&](std::int32_t v) { return !variables_[at(v)].active || fill_alone(v); });
  for (const std::int32_t c : dirty_) {
    Constraint& constraint = constraints_[at(c)];
    if (!constraint.dirty) {
      continue;
    }
    constraint.dirty = false;
    if (constraint.held == 0) {
      constraint.level = kNone;  // those that it limited are gone
    }
    if (constraint.left < 0) {
      for (const User& user : crowds_[at(c)].users) {  // the capacity was cut
        joining_.push_back(user.variable);
      }
    }
    if (constraint.level != kNone) {
      touch(c);
    }
  }
  dirty_.clear();
  stirred_ = touched_;
  std::ranges::for_each(touched_, [&](std::int32_t c) { constraints_[at(c)].stirred = true; });
  let_join();
}

MaxMin::Constraint& MaxMin::touch(std::int32_t c) {
  Constraint& constraint = constraints_[at(c)];
  if (constraint.reached != epoch_) {
    constraint.reached = epoch_;
    constraint.queued = kNone;
    constraint.open = 0;
    constraint.held = constraint.level == kNone ? 0 : constraint.held;
    constraint.joined = 0;
    constraint.settled = constraint.stirred = false;
    pending_ += constraint.held > 0 ? 1 : 0;
    touched_.push_back(c);
  }
  return constraint;
}

void MaxMin::join(std::int32_t v) {
  Variable& variable = variables_[at(v)];
  if (variable.joined == epoch_) {
    return;
  }
  variable.joined = epoch_;
  variable.open = true;
  joined_.push_back(v);
  ++pending_;
  if (variable.bound != kNone) {
    candidates_.push({variable.bound, ~v});
  }
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Element& element = elements_[at(e)];
    Constraint& constraint = touch(element.constraint);
    const bool was_pending = constraint.held > 0 && !constraint.settled;
    constraint.left += static_cast<Wide>(element.weight) * variable.rate;
    constraint.held -= variable.rate == constraint.level ? element.weight : 0;
    constraint.open += element.weight;
    constraint.settled = false;
    pending_ += (constraint.held > 0 ? 1 : 0) - (was_pending ? 1 : 0);
    ++constraint.joined;
    if (!constraint.stirred) {
      constraint.stirred = true;
      stirred_.push_back(element.constraint);
    }
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
std::int64_t MaxMin::key_of(const Constraint& constraint) {
  const std::int64_t share = constraint.open > 0 ? divide(constraint.left, constraint.open) : kNone;
  return constraint.held > 0 && !constraint.settled ? std::min(share, constraint.level) : share;
}

void MaxMin::enqueue(std::int32_t c) {
  Constraint& constraint = constraints_[at(c)];
  const std::int64_t key = key_of(constraint);
  if (key < constraint.queued) {
    constraint.queued = key;
    candidates_.push({key, c});
  }
}

void MaxMin::enqueue_stirred() {
  for (const std::int32_t c : stirred_) {
    constraints_[at(c)].stirred = false;
    enqueue(c);
  }
  stirred_.clear();
}

/// Takes the candidates of the lowest level, or of those that are not above `level`, to the end of
/// tied_, where they count as queued at it; kNone if there are none. A key may be stale, but only
/// too low: while others are filled the share of a constraint never falls (each takes at most that
/// share from it, and rounding down keeps this).
std::int64_t MaxMin::next_level(std::int64_t level) {
  while (!candidates_.empty() && candidates_.top().key <= level) {
    const Candidate candidate = candidates_.top();
    if (candidate.index >= 0) {
      Constraint& constraint = constraints_[at(candidate.index)];
      if (candidate.key != constraint.queued) {
        candidates_.pop();  // a newer entry stands for it
        continue;
      }
      constraint.queued = key_of(constraint);
      if (constraint.queued != candidate.key && constraint.queued != kNone) {
        candidates_.replace_top({constraint.queued, candidate.index});
        continue;
      }
      candidates_.pop();
      if (constraint.queued == kNone) {
        continue;
      }
    } else {
      candidates_.pop();
      if (!variables_[at(~candidate.index)].open) {
        continue;
      }
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
    const Constraint& constraint = constraints_[at(index)];
    Crowd& crowd = crowds_[at(index)];
    crowd.equal = level == constraint.level ? constraint.held : 0;
    if (constraint.joined == std::ssize(crowd.users)) {
      continue;
    }
    if (constraint.open == 0 || divide(constraint.left, constraint.open) > level) {
      find_held(index, level);
    } else if (level < constraint.level) {
      find_above(index, level);
    }
  }
}

/// Whether a candidate of this level is one of a higher level now, or of none; it waits for that.
bool MaxMin::has_risen(std::int32_t index, std::int64_t level) {
  if (index < 0 || key_of(constraints_[at(index)]) == level) {
    return false;
  }
  constraints_[at(index)].queued = kNone;
  enqueue(index);
  return true;
}

/// The constraint fills up below its old level. Of those above, whoever is also above the level at
/// which it fills up together with them joins; those below that level stay as they are, for now.
void MaxMin::find_above(std::int32_t c, std::int64_t level) {
  Crowd& crowd = crowds_[at(c)];
  above_.clear();
  Wide left = constraints_[at(c)].left;
  std::int64_t weight = constraints_[at(c)].open;
  for (const User& user : crowd.users) {
    const Variable& variable = variables_[at(user.variable)];
    if (variable.rate < level || variable.joined == epoch_) {
      continue;
    }
    const std::int64_t own = elements_[at(user.element)].weight;
    if (variable.rate == level) {
      crowd.equal += own;
    } else {
      above_.push_back({user.variable, own, variable.rate});
      left += static_cast<Wide>(own) * variable.rate;
      weight += own;
    }
  }
  for (std::size_t before = 0; before != above_.size();) {
    before = above_.size();
    const std::int64_t together = divide(left, weight);
    std::erase_if(above_, [&](const Above& each) {
      if (each.rate > together) {
        return false;
      }
      left -= static_cast<Wide>(each.weight) * each.rate;
      weight -= each.weight;
      return true;
    });
  }
  std::ranges::for_each(above_, [&](const Above& each) { joining_.push_back(each.variable); });
}

/// The level is that of variables which the constraint limited. If there is room above, it does so
/// no more, and those that nothing else limits join.
void MaxMin::find_held(std::int32_t c, std::int64_t level) {
  Constraint& constraint = constraints_[at(c)];
  const Wide left = constraint.left + static_cast<Wide>(constraint.held) * level;
  if (constraint.held == 0 || divide(left, constraint.open + constraint.held) == level) {
    return;
  }
  pending_ -= constraint.settled ? 0 : 1;
  constraint.held = 0;
  constraint.level = kNone;
  crowds_[at(c)].equal = 0;
  for (const User& user : crowds_[at(c)].users) {
    const Variable& variable = variables_[at(user.variable)];
    if (variable.rate == level && variable.joined != epoch_ && !is_limited(variable)) {
      joining_.push_back(user.variable);
    }
  }
}

/// Whether its bound or a constraint holds it at its rate, as far as is known.
bool MaxMin::is_limited(const Variable& variable) const {
  bool limited = variable.rate == variable.bound;
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    limited = limited || constraints_[at(elements_[at(e)].constraint)].level == variable.rate;
  }
  return limited;
}

void MaxMin::let_join() {
  std::ranges::for_each(joining_, [&](std::int32_t v) { join(v); });
  give_back(joining_);
  enqueue_stirred();
}

/// Progressive filling, level by level, all candidates of a level together.
void MaxMin::fill() {
  while (pending_ > 0) {
    tied_.clear();
    const std::int64_t level = next_level(kNone);
    LOCKSTEP_CHECK(level != kNone, "every variable is fixed by a constraint or its bound");
    for (bool more = true; more;) {
      find_joining(level);
      more = !joining_.empty();
      let_join();
      std::erase_if(tied_, [&](std::int32_t index) { return has_risen(index, level); });
      LOCKSTEP_CHECK(!more || next_level(level) == level, "levels do not fall");
    }
    for (const std::int32_t index : tied_) {
      if (index < 0) {
        fix(~index, level);
      } else {
        settle(index, level);
      }
    }
  }
  candidates_.clear();
}

/// The constraint is full at this level, or has found its old one again: whoever is open stays
/// there.
void MaxMin::settle(std::int32_t c, std::int64_t level) {
  Constraint& constraint = constraints_[at(c)];
  constraint.queued = kNone;
  pending_ -= constraint.held > 0 && !constraint.settled ? 1 : 0;
  constraint.settled = true;
  Crowd& crowd = crowds_[at(c)];
  crowd.new_level = level;
  for (std::size_t i = 0; constraint.open > 0 && i < crowd.users.size(); ++i) {
    fix(crowd.users[i].variable, level);
  }
}

void MaxMin::fix(std::int32_t v, std::int64_t rate) {
  Variable& variable = variables_[at(v)];
  if (!variable.open) {
    return;
  }
  variable.open = false;
  --pending_;
  variable.moved = variable.rate != rate;
  variable.rate = rate;
  for (std::int32_t e = variable.first; e < variable.first + variable.count; ++e) {
    const Element& element = elements_[at(e)];
    Constraint& constraint = constraints_[at(element.constraint)];
    constraint.left -= static_cast<Wide>(element.weight) * rate;
    constraint.open -= element.weight;
    Crowd& crowd = crowds_[at(element.constraint)];
    crowd.last_weight = crowd.last_level == rate ? crowd.last_weight : 0;
    crowd.last_weight += element.weight;
    crowd.last_level = rate;
  }
}

void MaxMin::commit() {
  filled_variables_ += std::ssize(joined_);
  for (const std::int32_t v : joined_) {
    if (variables_[at(v)].moved) {
      changed_.emplace_back(v);
    }
  }
  for (const std::int32_t c : touched_) {
    Constraint& constraint = constraints_[at(c)];
    Crowd& crowd = crowds_[at(c)];
    constraint.level = crowd.new_level;
    constraint.held = crowd.equal + (crowd.last_level == crowd.new_level ? crowd.last_weight : 0);
    if (constraint.held == 0) {
      constraint.level = kNone;
    }
    crowd.new_level = crowd.last_level = kNone;  // for the next
    crowd.equal = crowd.last_weight = 0;
  }
}

/// Of whatever this solve has changed, and of all that share a constraint with it.
void MaxMin::check_certificate() const {
  std::vector<std::int32_t> variables = joined_;
  for (const VariableId v : changed_) {
    variables.push_back(v.value);
  }
  for (const std::int32_t c : touched_) {
    for (const User& user : crowds_[at(c)].users) {
      variables.push_back(user.variable);
    }
  }
  std::ranges::sort(variables);
  const auto repeated = std::ranges::unique(variables);
  variables.erase(repeated.begin(), repeated.end());
  const std::string violation = max_min_violation(*this, variables);
  LOCKSTEP_CHECK(violation.empty(), violation);
}

}  // namespace lockstep
