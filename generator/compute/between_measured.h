#pragma once

#include <functional>
#include <optional>

#include "base/units.h"
#include "generator/compute/profile_json.h"
#include "generator/exact/operator.h"

namespace lockstep {

/// Measured sizes on the two sides of an operator's may be this far apart, the larger over the
/// smaller.
inline constexpr double kWidestBracket = 4;

/// The time of an operator that was not measured but lies between two that were: alike in all, but
/// for one size, of which one has less and one has more.
///
/// With t the measured times and `model` their times by formula, ratio = t / model is taken to run
/// straight in log(ratio) over log(size), so that
///
///     time = model(op) · ratio_low^(1-w) · ratio_high^w,    w = log(size / low) / log(high / low)
///
/// which is exact where the formula is right but for a factor, and the measured time where a size
/// is one that was measured. Sizes that change together are one: an attention's queries and keys,
/// its heads and their groups of keys. An attention's head sizes are never interpolated. Of several
/// brackets the narrowest counts, then the size that docs/formats/profile.md names first.
///
/// Nothing where no bracket of at most kWidestBracket exists: nothing is ever extrapolated.
/// O(operators of the profile). ERRORS: as `model`.
std::optional<Time> between_measured(const OperatorProfile& profile, const Operator& op,
                                     Precision precision,
                                     const std::function<Time(const Operator&)>& model);

}  // namespace lockstep
