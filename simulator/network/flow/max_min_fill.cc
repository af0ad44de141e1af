// How MaxMin solves: which variables are filled again, level by level, and what that leaves.

#include <algorithm>
#include <string>

#include "base/error.h"
#include "simulator/network/flow/give_back.h"
#include "simulator/network/flow/max_min.h"
#include "simulator/network/flow/max_min_certificate.h"

namespace lockstep {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// Users of a constraint from asking for their memory to looking at them.
constexpr std::size_t kAhead = 6;

}  // namespace

std::span<const VariableId> MaxMin::solve() {
  give_back(changed_);
  if (dirty_.empty() && fresh_.empty()) {
    return {};
  }
  begin_epoch();
  seed();
  fill();
  commit();
  if (certified_) {
    check_certificate();
  }
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
    __builtin_prefetch(&crowds_[at(c)]);
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

/// Asks for what looking at a user will need; beyond the last one nothing.
void MaxMin::fetch_user(const Crowd& crowd, std::size_t user) const {
  if (user < crowd.users.size()) {
    __builtin_prefetch(&variables_[at(crowd.users[user].variable)]);
  }
}

/// The constraint fills up below its old level. Of those above, whoever is also above the level at
/// which it fills up together with them joins; those between are left to later levels of this
/// solve.
void MaxMin::find_above(std::int32_t c, std::int64_t level) {
  Crowd& crowd = crowds_[at(c)];
  above_.clear();
  Wide left = constraints_[at(c)].left;
  std::int64_t weight = constraints_[at(c)].open;
  for (std::size_t i = 0; i < crowd.users.size(); ++i) {
    fetch_user(crowd, i + kAhead);
    const User& user = crowd.users[i];
    const Variable& variable = variables_[at(user.variable)];
    if (variable.rate < level || variable.joined == epoch_) {
      continue;
    }
    const std::int64_t own = crowd.weight != 0 ? crowd.weight : elements_[at(user.element)].weight;
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
  Crowd& crowd = crowds_[at(c)];
  crowd.equal = 0;
  for (std::size_t i = 0; i < crowd.users.size(); ++i) {
    fetch_user(crowd, i + kAhead);
    const User& user = crowd.users[i];
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
  constexpr std::size_t kMost = 256;  // whose memory is still at hand when they join
  if (joining_.size() > 1 && joining_.size() <= kMost) {  // their misses at once
    for (const std::int32_t v : joining_) {
      const Element* const first = &elements_[at(variables_[at(v)].first)];
      __builtin_prefetch(first);
      __builtin_prefetch(first + variables_[at(v)].count - 1);
    }
    for (const std::int32_t v : joining_) {
      for (const Element& element : elements(VariableId(v))) {
        __builtin_prefetch(&constraints_[at(element.constraint)]);
      }
    }
  }
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
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  const std::string violation = max_min_violation(*this, variables);
  LOCKSTEP_CHECK(violation.empty(), violation);
}

}  // namespace lockstep
