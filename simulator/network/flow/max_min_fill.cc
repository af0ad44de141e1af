// How MaxMin solves: which variables are filled again, level by level, and what that leaves.

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/index.h"
#include "simulator/network/flow/give_back.h"
#include "simulator/network/flow/max_min.h"
#include "simulator/network/flow/max_min_certificate.h"

namespace lockstep {
namespace {

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
  done_ = 0;
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
    constraint.others = limits ? 0 : above(rate);
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
    if (crowds_[at(c)].users.empty()) {
      continue;
    }
    touch(c);
    if (constraint.left < 0) {
      for (const User& user : crowds_[at(c)].users) {  // the capacity was cut
        joining_.push_back(user.variable);
      }
    } else {
      find_squeezed(c);
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
    constraint.settled = constraint.stirred = constraint.exact = false;
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
    constraint.settled = constraint.exact = false;
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

/// A number that is not below the rate, as constraints keep it in `others`.
float MaxMin::above(std::int64_t rate) { return static_cast<float>(rate) * (1 + 0x1p-22F); }

/// The weight of the users that have not joined, or more.
double MaxMin::staying_weight(std::int32_t c) const {
  const Crowd& crowd = crowds_[at(c)];
  const auto staying = static_cast<double>(std::ssize(crowd.users) - constraints_[at(c)].joined);
  return staying * static_cast<double>(crowd.weight != 0 ? crowd.weight : largest_weight_);
}

/// Users of this weight fill the constraint up at `level`. With others that stay, of weight W, it
/// may be full at the rate of one of them, by rounding: at more than level - 1 - W / weight, as
///
///     level * weight + (sum of their rates, none below l) < (l + 1) (weight + W)
///
/// where it is full at l. Whether no user but those held is that fast.
bool MaxMin::is_out_of_reach(std::int32_t c, std::int64_t level, std::int64_t weight) const {
  const double apart = static_cast<double>(level) - 2 - constraints_[at(c)].others;
  return apart * static_cast<double>(weight) > staying_weight(c);
}

/// The level at which a constraint with open variables is full, if those that have not joined stay.
/// Without looking at users it may be less, where some may be within roundings of it.
std::int64_t MaxMin::full_at(std::int32_t c, bool looking) {
  const Constraint& constraint = constraints_[at(c)];
  std::int64_t level = divide(constraint.left, constraint.open), weight = constraint.open;
  if (constraint.joined == std::ssize(crowds_[at(c)].users)) {
    return level;
  }
  if (constraint.held > 0 && constraint.left < static_cast<Wide>(constraint.level + 1) * weight +
                                                   constraint.held) {  // not above theirs
    weight += constraint.held;
    level = divide(constraint.left + static_cast<Wide>(constraint.held) * constraint.level, weight);
  }
  if (is_out_of_reach(c, level, weight)) {
    return level;
  }
  const double slack = 2 + staying_weight(c) / static_cast<double>(weight);
  const std::int64_t lowest =
      slack < static_cast<double>(level) ? level - static_cast<std::int64_t>(slack) : 0;
  return looking ? gather_meeting(c, std::max(lowest, done_)) : lowest;
}

/// Asks for what looking at a user will need; beyond the last one nothing.
void MaxMin::fetch_user(const Crowd& crowd, std::size_t user) const {
  if (user < crowd.users.size()) {
    __builtin_prefetch(&variables_[at(crowd.users[user].variable)]);
  }
}

/// Calls f(user, variable) for the users that are not open.
template <class F>
void MaxMin::each_closed(const Crowd& crowd, F f) const {
  for (std::size_t i = 0; i < crowd.users.size(); ++i) {
    fetch_user(crowd, i + kAhead);
    const Variable& variable = variables_[at(crowd.users[i].variable)];
    if (!variable.open) {
      f(crowd.users[i], variable);
    }
  }
}

/// The same as weight(user), without a look at its element where all are alike.
std::int64_t MaxMin::weight_of(const Crowd& crowd, const User& user) const {
  return crowd.weight != 0 ? crowd.weight : weight(user);
}

/// The level at which a constraint is full with its open variables and those users that stay, at
/// `from` or above: they are in meeting_ then. kNone if there are none.
std::int64_t MaxMin::gather_meeting(std::int32_t c, std::int64_t from) {
  Constraint& constraint = constraints_[at(c)];
  const Crowd& crowd = crowds_[at(c)];
  meeting_.clear();
  Wide left = constraint.left;
  std::int64_t weight = constraint.open, others = 0;
  each_closed(crowd, [&](const User& user, const Variable& variable) {
    const bool stays = variable.joined != epoch_;
    if (!(stays && constraint.held > 0 && variable.rate == constraint.level)) {
      others = std::max(others, variable.rate);
    }
    if (stays && variable.rate >= from) {
      const std::int64_t own = weight_of(crowd, user);
      meeting_.push_back({user.variable, own, variable.rate});
      left += static_cast<Wide>(own) * variable.rate;
      weight += own;
    }
  });
  constraint.others = above(others);
  // Users below the level of all together stay below it: without them it is higher still.
  while (weight > 0) {
    const std::int64_t level = divide(left, weight);
    const std::size_t below = std::erase_if(meeting_, [&](const Staying& each) {
      if (each.rate >= level) {
        return false;
      }
      left -= static_cast<Wide>(each.weight) * each.rate;
      weight -= each.weight;
      return true;
    });
    if (below == 0) {
      return level;
    }
  }
  return kNone;
}

/// The level at which a constraint is to be looked at: where it is full or, if some still count on
/// it, where it was before. `looking` as in full_at().
std::int64_t MaxMin::key_of(std::int32_t c, bool looking) {
  const Constraint& constraint = constraints_[at(c)];
  const std::int64_t level = constraint.open > 0 ? full_at(c, looking) : kNone;
  return constraint.held > 0 && !constraint.settled ? std::min(level, constraint.level) : level;
}

void MaxMin::enqueue(std::int32_t c) {
  Constraint& constraint = constraints_[at(c)];
  const std::int64_t key = key_of(c, /*looking=*/false);
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
      if (!constraint.exact) {
        constraint.queued = key_of(candidate.index, /*looking=*/true);
        constraint.exact = true;
      }
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
    if (crowd.equal > 0) {
      find_held(index, level);
    } else {
      find_above(index, level);
    }
  }
}

/// Whether a candidate of this level is one of a higher level now, or of none; it waits for that.
bool MaxMin::has_risen(std::int32_t index, std::int64_t level) {
  if (index < 0 || constraints_[at(index)].exact || key_of(index, /*looking=*/true) == level) {
    return false;
  }
  constraints_[at(index)].queued = kNone;
  enqueue(index);
  return true;
}

/// The constraint is full at this level: whoever is above joins.
void MaxMin::find_above(std::int32_t c, std::int64_t level) {
  Constraint& constraint = constraints_[at(c)];
  if (constraint.held == 0 && constraint.others < static_cast<double>(level)) {
    return;
  }
  Crowd& crowd = crowds_[at(c)];
  std::int64_t others = 0;
  each_closed(crowd, [&](const User& user, const Variable& variable) {
    if (variable.rate <= level) {  // equal ones too: the constraint may rise and meet them again
      others = std::max(others, variable.rate);
    }
    if (variable.joined == epoch_ || variable.rate < level) {
      return;
    }
    if (variable.rate == level) {
      crowd.equal += weight_of(crowd, user);
    } else {
      joining_.push_back(user.variable);
    }
  });
  constraint.others = above(others);
}

/// The level is that of variables which the constraint limited. If there is room above, it does so
/// no more, and those that nothing else limits join.
void MaxMin::find_held(std::int32_t c, std::int64_t level) {
  Constraint& constraint = constraints_[at(c)];
  const Wide left = constraint.left + static_cast<Wide>(constraint.held) * level;
  if (divide(left, constraint.open + constraint.held) == level) {
    return;
  }
  pending_ -= constraint.settled ? 0 : 1;
  constraint.held = 0;
  constraint.level = kNone;
  constraint.exact = false;
  constraint.others = std::max(constraint.others, above(level));
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

/// A constraint without open variables may be full at a level below some that stay, who join: it
/// has less than nothing left, or by rounding, less than a unit for each of them.
void MaxMin::find_squeezed(std::int32_t c) {
  Constraint& constraint = constraints_[at(c)];
  if (!is_crowded(c) || (constraint.left >= 0 && constraint.held > 0 &&
                         is_out_of_reach(c, constraint.level, constraint.held))) {
    return;
  }
  const std::int64_t level = gather_meeting(c, done_);
  for (const Staying& each : meeting_) {
    if (each.rate > level) {
      joining_.push_back(each.variable);
    }
  }
}

/// Whether it has less left than a unit for each of those that stay.
bool MaxMin::is_crowded(std::int32_t c) const {
  const auto left = static_cast<std::int64_t>(constraints_[at(c)].left >> 40);  // whole units
  return static_cast<double>(left) * static_cast<double>(kOne) <= staying_weight(c);
}

void MaxMin::find_all_squeezed() {
  if (stirred_.empty()) {
    return;
  }
  joining_.clear();
  for (const std::int32_t c : stirred_) {
    constraints_[at(c)].stirred = false;
    if (!constraints_[at(c)].settled) {
      find_squeezed(c);
    }
  }
  stirred_.clear();
  let_join();
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
  if (joining_.empty() && stirred_.empty()) {
    return;
  }
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
    done_ = level;
    find_all_squeezed();
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
    constraint.exact = false;
    Crowd& crowd = crowds_[at(element.constraint)];
    if (crowd.last_level != rate) {
      if (crowd.last_level != kNone) {
        constraint.others = std::max(constraint.others, above(crowd.last_level));
      }
      crowd.last_level = rate;
      crowd.last_weight = 0;
    }
    crowd.last_weight += element.weight;
    if (constraint.open == 0 && !constraint.settled && !constraint.stirred &&
        constraint.joined < std::ssize(crowd.users) && is_crowded(element.constraint)) {
      constraint.stirred = true;
      stirred_.push_back(element.constraint);
    }
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
    if (crowd.last_level != kNone && crowd.last_level != crowd.new_level) {
      constraint.others = std::max(constraint.others, above(crowd.last_level));
    }
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
