#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/ids.h"

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
/// A change (variable added or removed, capacity set) affects only the variables that are connected
/// to it through shared constraints. solve() collects these components and fills each one by
/// itself.
///
/// Complexity: with E the terms and c the constraints of the touched components, O(E + r log c),
/// where r >= c counts the looks at the smallest constraint; adding and removing are O(terms). No
/// allocation once the arrays have grown to the largest state met.
///
/// Determinism: the rates are a function of the present system alone, not of the order in which it
/// was built or of what had been removed, provided that the coefficients are multiples of one power
/// of two and their sum on a constraint is below 2^53 times it. Then every sum that depends on an
/// order is a sum of coefficients and exact; capacity used up at one level is subtracted at once,
/// as level times sum. (Otherwise rates are right to rounding.) Ties go by constraint id.
class MaxMin {
 public:
  /// a_cv of one constraint. A constraint that stands twice in a variable counts twice.
  struct Term {
    ConstraintId constraint;
    double coefficient = 1;
  };
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  /// The smallest coefficient; far below what packet spraying over 65,536 paths gives.
  static constexpr double kMinCoefficient = 1.0 / (1 << 20);

  /// PRECONDITION: capacity > 0 and finite.
  ConstraintId add_constraint(double capacity);
  void set_capacity(ConstraintId constraint, double capacity);

  /// Adds a variable; inactive ones hold their id and terms but take part only from activate() on.
  /// Ids of removed variables are used again.
  /// PRECONDITION: at least one term, coefficients >= kMinCoefficient, bound > 0.
  VariableId add_variable(std::span<const Term> terms, double bound = kUnbounded,
                          bool active = true);
  void activate(VariableId variable);
  void remove_variable(VariableId variable);

  /// Brings all rates up to date. Returns the variables whose rate is not what it was (new ones
  /// included), in no particular order; valid until the next call.
  std::span<const VariableId> solve();

  /// The rate of an active variable as of the last solve().
  double rate(VariableId variable) const { return variables_[variable.index()].rate; }

  // The system as it stands, for certificates and tests.
  struct Element {
    double coefficient;
    std::int32_t constraint;
    std::int32_t place;  ///< where the constraint lists it; -1 while the variable is inactive
  };
  struct User {
    std::int32_t variable;
    std::int32_t element;  ///< that ties it to the constraint; see coefficient()
  };
  std::size_t constraint_count() const { return constraints_.size(); }
  double capacity(ConstraintId constraint) const {
    return constraints_[constraint.index()].capacity;
  }
  double bound(VariableId variable) const { return variables_[variable.index()].bound; }
  /// The active variables on a constraint.
  std::span<const User> users(ConstraintId constraint) const {
    return constraints_[constraint.index()].users;
  }
  double coefficient(const User& user) const {
    return elements_[static_cast<std::size_t>(user.element)].coefficient;
  }
  std::span<const Element> elements(VariableId variable) const {
    const Variable& v = variables_[variable.index()];
    return std::span(elements_).subspan(static_cast<std::size_t>(v.first),
                                        static_cast<std::size_t>(v.count));
  }

 private:
  struct Variable {
    double rate = 0;
    double bound = kUnbounded;
    std::int32_t first = 0, count = 0;  // its elements
    std::uint32_t reached = 0;          // epoch in which solve() came here
    bool active = false;
    bool fixed = false;
  };
  struct Constraint {
    double capacity = 0;
    std::vector<User> users;
    std::uint32_t reached = 0;
    bool dirty = false;
    // While filling: `spare` of the capacity is left by rates below `level`; variables of total
    // coefficient `level_weight` are fixed at `level` and `open` ones, of `weight`, are not fixed.
    std::int32_t open = 0;
    double spare = 0, level = 0, level_weight = 0, weight = 0;
  };
  struct Candidate {
    double share;
    std::int32_t constraint;
  };

  static double share_of(const Constraint& constraint);
  void mark_dirty(std::int32_t constraint);
  std::int32_t allocate_elements(std::size_t count);
  void collect_component(std::int32_t seed);
  void fill_component();
  void fix(std::int32_t variable, double rate);

  std::vector<Variable> variables_;
  std::vector<Constraint> constraints_;
  std::vector<Element> elements_;
  std::vector<std::int32_t> free_variables_;
  std::vector<std::vector<std::int32_t>> free_elements_;  // first element of free runs, by length
  std::vector<std::int32_t> dirty_;

  std::uint32_t epoch_ = 0;
  std::vector<std::int32_t> component_constraints_, component_variables_, bounded_;
  std::vector<Candidate> candidates_;  // a heap, smallest share first
  std::size_t open_variables_ = 0;
  std::vector<VariableId> changed_;
};

}  // namespace lockstep
