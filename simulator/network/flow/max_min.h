#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/ids.h"
#include "simulator/network/flow/four_ary_heap.h"

namespace lockstep {

using VariableId = Id<struct MaxMinVariableTag>;
using ConstraintId = Id<struct MaxMinConstraintTag>;

/// A linear max-min system: the fairest rates that a set of shared resources allows. It knows
/// nothing of networks.
///
/// The system. Variables x_v > 0, constraints c with capacity C_c > 0, coefficients a_cv > 0
/// (sparse) and optional bounds b_v > 0:
///
///     for every constraint c:  sum over v of a_cv x_v <= C_c
///     for every variable v:    x_v <= b_v
///
/// Of all solutions it finds the max-min fair one: no x_v can grow without shrinking some x_u that
/// is not larger. It exists and is unique, and it is the only solution with this certificate
/// (Bertsekas, Gallager: Data Networks, 2nd ed., section 6.5.2):
///
///     every v is at its bound, or has a constraint c with a_cv > 0 that is saturated (sum = C_c)
///     and on which no x_u is larger than x_v.
///
/// Example: three variables, two constraints, C_0 = 10, C_1 = 9.
///
///     x_0 + x_1       <= 10      shares: 10 / 2 = 5
///           x_1 + 2 x_2 <= 9     shares:  9 / 3 = 3   <- smallest
///
/// Progressive filling raises all rates together until the first constraint is full. That is
/// constraint 1 at level 3: x_1 = x_2 = 3. What is left is x_0 <= 10 - 3, so x_0 = 7. Certificate:
/// x_1 and x_2 are the largest on constraint 1 (3 + 2 * 3 = 9), x_0 on constraint 0 (7 + 3 = 10).
///
/// A change (variable activated, deactivated, capacity or bound set) is solved locally, in one pass
/// from the lowest level up. Filled again are, at first, new variables; all others stay as they are
/// until the level comes to where they break the certificate, and then they join:
///
///     a constraint fills up at level l   its other variables with rates above l join
///     the level comes to that of a       if it no longer fills up there, the variables that it
///     constraint which was touched       and no other limited join
///
/// A variable joins at a level not above its old rate, so no level has to be done again, each is
/// filled once, and the result holds the certificate. As that has one solution, it is the one that
/// filling everything would find.
///
/// Whole numbers. Rates are whole multiples of 1 / units, and levels are rounded down to that. In
/// units: a constraint is full at the lowest level l with
///
///     floor((C - sum over x_v < l of a_v x_v) / (sum over x_v >= l of a_v)) = l
///
/// and then none of its x_v is above l; what it leaves unused is less than one unit for each of
/// those at l. Every variable is at its bound, or at the level of a constraint that is full. That
/// again has one solution, to the last unit: whatever was solved before, and in any order. Two
/// levels may meet by rounding alone: of two constraints of 5 with three variables each, one of
/// them on both, all get 1. Where the other two on the second come later they get 1 as well, not
/// (5 - 1) / 2 = 2: at 1 their constraint is full. So users that stay as they are have to be looked
/// at where they are within such roundings of the level.
///
/// Every decision depends on values alone, never on ids or on an order: all constraints that fill
/// up at one level do so together. So variables that play the same role get the same rate to the
/// last bit, and a system in which they are merged into one with the sum of their coefficients
/// gives it too (docs/models.md, symmetry).
///
/// Complexity: with S the variables filled again, h their terms and u the users of the constraints
/// that limited or now limit some of them, O(S h log(S h) + u); a variable that meets no other
/// costs O(h). Adding and removing are O(terms). No allocation once the arrays have grown to the
/// largest state met.
class MaxMin {
 public:
  /// a_cv of one constraint. A constraint that stands twice in a variable counts twice.
  struct Term {
    ConstraintId constraint;
    double coefficient = 1;
  };
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  /// The smallest coefficient; far below what packet spraying over 65,536 paths gives. Coefficients
  /// are kept to 2^-40.
  static constexpr double kMinCoefficient = 1.0 / (1 << 20);
  /// Capacity times units may not be more: 1.1e18.
  static constexpr double kMaxUnits = 1LL << 60;

  /// Rates are multiples of 1 / units.
  explicit MaxMin(double units = 0x1p36) : units_(units) {}

  /// Makes room for so many variables with so many terms together.
  void reserve(std::size_t variables, std::size_t terms);
  /// PRECONDITION: 0 < capacity <= kMaxUnits / units.
  ConstraintId add_constraint(double capacity);
  void set_capacity(ConstraintId constraint, double capacity);

  /// Adds a variable; inactive ones hold their id and terms but take part only from activate() on.
  /// Ids of removed variables are used again.
  /// PRECONDITION: at least one term, coefficients >= kMinCoefficient, bound > 0.
  VariableId add_variable(std::span<const Term> terms, double bound = kUnbounded,
                          bool active = true);
  /// A further term of a variable, active or not.
  void add_term(VariableId variable, Term term);
  /// A new bound of a variable, active or not. PRECONDITION: bound > 0.
  void set_bound(VariableId variable, double bound);
  void activate(VariableId variable);
  void deactivate(VariableId variable);
  /// From now on the variable counts as so many with the same terms, which have the same rate; 0:
  /// it is inactive. At first it counts as one. PRECONDITION: copies >= 0; of an inactive variable
  /// it activates.
  void set_copies(VariableId variable, std::int32_t copies);
  /// Deactivates many, in this order: memory is fetched ahead.
  void deactivate(std::span<const std::int32_t> variables);
  /// Asks for the memory that activate() of those after the i-th of these will need.
  void fetch_ahead(std::span<const std::int32_t> variables, std::size_t i) const;
  /// Asks for the memory that changes of the variable will need, in three steps: each reads what
  /// the one before asked for.
  void fetch(VariableId variable) const { __builtin_prefetch(&variables_[variable.index()]); }
  void fetch_elements(VariableId variable) const {
    __builtin_prefetch(&elements_[static_cast<std::size_t>(variables_[variable.index()].first)]);
  }
  void fetch_constraints(VariableId variable) const {
    for (const Element& element : elements(variable)) {
      __builtin_prefetch(&constraints_[static_cast<std::size_t>(element.constraint)]);
      __builtin_prefetch(&crowds_[static_cast<std::size_t>(element.constraint)]);
    }
  }
  void remove_variable(VariableId variable);

  /// From now on each solve() is followed by a check of its certificate, as it always is in Debug
  /// builds. ERRORS of solve() then: InternalError that names the violation.
  void certify() { certified_ = true; }

  /// Brings all rates up to date. Returns the variables whose rate is not what it was (new ones
  /// included), in no particular order; valid until the next call.
  std::span<const VariableId> solve();

  /// The rate of an active variable as of the last solve().
  double rate(VariableId variable) const {
    return static_cast<double>(variables_[variable.index()].rate) / units_;
  }

  /// The same as a number of units.
  std::int64_t rate_units(VariableId variable) const { return variables_[variable.index()].rate; }

  // The system as it stands, for certificates and tests.
  static constexpr std::int64_t kOne = std::int64_t{1} << 40;  ///< weight of coefficient 1
  struct Element {
    std::int64_t weight;  ///< the coefficient, times the variable's copies, in 2^-40
    std::int32_t constraint;
    std::int32_t place;  ///< where the constraint lists it; -1 while the variable is inactive
  };
  struct User {
    std::int32_t variable;
    std::int32_t element;  ///< that ties it to the constraint; see coefficient()
  };
  std::size_t constraint_count() const { return constraints_.size(); }
  double capacity(ConstraintId constraint) const {
    return static_cast<double>(capacity_[constraint.index()]) / units_;
  }
  std::int64_t capacity_units(ConstraintId constraint) const {
    return capacity_[constraint.index()];
  }
  double bound(VariableId variable) const {
    const std::int64_t bound = variables_[variable.index()].bound;
    return bound == kNone ? kUnbounded : static_cast<double>(bound) / units_;
  }
  /// The active variables on a constraint.
  std::span<const User> users(ConstraintId constraint) const {
    return crowds_[constraint.index()].users;
  }
  double coefficient(const Element& element) const {
    return static_cast<double>(element.weight) / static_cast<double>(kOne);
  }
  double coefficient(const User& user) const {
    return coefficient(elements_[static_cast<std::size_t>(user.element)]);
  }
  std::int64_t weight(const User& user) const {
    return elements_[static_cast<std::size_t>(user.element)].weight;
  }
  std::span<const Element> elements(VariableId variable) const {
    const Variable& v = variables_[variable.index()];
    return std::span(elements_).subspan(static_cast<std::size_t>(v.first),
                                        static_cast<std::size_t>(v.count));
  }
  /// Variables filled again so far: what solving has cost.
  std::int64_t filled_variables() const { return filled_variables_; }

 private:
  __extension__ using Wide = __int128;
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  struct alignas(32) Variable {
    std::int64_t rate = 0;
    std::int64_t bound = kNone;
    std::int32_t first = 0, count = 0;
    std::uint32_t joined = 0;  ///< the solve in which it was last filled again
    bool active = false;
    bool open = false;   ///< in that solve: not fixed yet
    bool moved = false;  ///< fixed at another rate than before
  };
  /// What joining and fixing look at, in one cache line.
  struct alignas(64) Constraint {
    Wide left = 0;               ///< capacity less weight times rate of all users that are not open
    std::int64_t level = kNone;  ///< the rate of the variables that it limits, if it does
    /// Weight of the users with that rate; in a solve of those that have not joined.
    std::int64_t held = 0;
    // In the solve `reached`:
    std::int64_t open = 0;        ///< weight of the variables that have joined and are not fixed
    std::int64_t queued = kNone;  ///< its key in candidates_
    std::int32_t joined = 0;      ///< number of the users that have joined
    std::uint32_t reached = 0;
    bool settled = false;  ///< its level is found, or found to have stayed
    bool stirred = false;  ///< in stirred_
    bool exact = false;    ///< `queued` is its key as of now, not only a bound from below
    bool dirty = false;
    float others = 0;  ///< not below the rate of any user but those held (and, in a solve, open)
  };
  /// The rest of it.
  struct alignas(64) Crowd {
    std::vector<User> users;
    std::int64_t weight = 0;  ///< of each user, or 0 where they differ
    // In a solve:
    std::int64_t new_level = kNone;
    std::int64_t equal = 0;  ///< weight of those at `new_level` that have not joined
    std::int64_t last_level = kNone, last_weight = 0;  ///< users fixed last, and their weight
  };
  /// A constraint or the bound of a variable (~index), and the level at which it is to be looked
  /// at.
  struct Candidate {
    std::int64_t key;
    std::int32_t index;
    bool operator<(const Candidate& other) const { return key < other.key; }
  };

  /// A user that stays as it is so far.
  struct Staying {
    std::int32_t variable;
    std::int64_t weight, rate;
  };

  std::int64_t to_units(double value) const;
  std::int64_t bound_units(double bound) const;
  static std::int64_t divide(Wide left, std::int64_t weight);
  static float above(std::int64_t rate);
  double staying_weight(std::int32_t constraint) const;
  bool is_out_of_reach(std::int32_t constraint, std::int64_t level, std::int64_t weight) const;
  std::int64_t full_at(std::int32_t constraint, bool looking);
  std::int64_t gather_meeting(std::int32_t constraint, std::int64_t from);
  std::int64_t key_of(std::int32_t constraint, bool looking);
  void mark_dirty(std::int32_t constraint);
  std::int32_t allocate_elements(std::size_t count);
  void attach(std::int32_t variable, std::int32_t element);
  void detach(const Element& element);
  void begin_epoch();
  bool fill_alone(std::int32_t variable);
  void seed();
  Constraint& touch(std::int32_t constraint);
  void join(std::int32_t variable);
  void fetch_user(const Crowd& crowd, std::size_t user) const;
  template <class F>
  void each_closed(const Crowd& crowd, F f) const;
  std::int64_t weight_of(const Crowd& crowd, const User& user) const;
  void enqueue(std::int32_t constraint);
  void enqueue_stirred();
  std::int64_t next_level(std::int64_t level);
  void find_joining(std::int64_t level);
  bool has_risen(std::int32_t constraint, std::int64_t level);
  void find_above(std::int32_t constraint, std::int64_t level);
  void find_held(std::int32_t constraint, std::int64_t level);
  bool is_crowded(std::int32_t constraint) const;
  void find_squeezed(std::int32_t constraint);
  void find_all_squeezed();
  bool is_limited(const Variable& variable) const;
  void let_join();
  void fill();
  void settle(std::int32_t constraint, std::int64_t level);
  void fix(std::int32_t variable, std::int64_t rate);
  void commit();
  void check_certificate() const;

  double units_;
  std::int64_t largest_weight_ = 0;  ///< of any variable on any constraint, ever
#ifdef NDEBUG
  bool certified_ = false;
#else
  bool certified_ = true;
#endif
  std::vector<Variable> variables_;
  std::vector<std::int32_t> copies_;    // per variable; none while all count as one
  std::vector<std::int64_t> capacity_;  // per constraint
  std::vector<Constraint> constraints_;
  std::vector<Crowd> crowds_;  // per constraint
  std::vector<Element> elements_;
  std::vector<std::int32_t> free_variables_;
  std::vector<std::vector<std::int32_t>> free_elements_;  // first element of free runs, by length
  std::vector<std::int32_t> dirty_, fresh_;

  std::uint32_t epoch_ = 0;
  std::vector<std::int32_t> touched_;  // constraints reached by this solve
  std::vector<std::int32_t> joined_;   // variables filled again by this solve
  std::vector<std::int32_t> stirred_;  // constraints of those that joined last
  std::vector<std::int32_t> joining_;  // variables that break the certificate at the present level
  std::vector<std::int32_t> tied_;     // candidates at the present level
  std::vector<Staying> meeting_;       // users that a constraint may meet where it fills up
  FourAryHeap<Candidate> candidates_;
  std::int64_t done_ = 0;     // the last level that is filled
  std::int32_t pending_ = 0;  // variables not fixed yet, and constraints with held ones not settled
  std::vector<VariableId> changed_;
  std::int64_t filled_variables_ = 0;
};

}  // namespace lockstep
