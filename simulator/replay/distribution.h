#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"

namespace lockstep {

/// A distribution of slowdowns, factors on a duration, or of sizes. `spread` is s.
///
///     normal        1 + s z, at least 0.05
///     lognormal     exp(sigma z - sigma^2 / 2), sigma^2 = ln(1 + s^2): mean 1, deviation s
///     uniform       1 - s sqrt(3) … 1 + s sqrt(3), at least 0.05: mean 1, deviation s
///     exponential   1 + Exp(s): never faster, mean 1 + s; of sizes 1 - s + Exp(s), s up to 1:
///                   mean 1, deviation s
///     histogram     the values of a file, each as often as its weight says
///
/// z is a standard normal (Box and Muller 1958). A plain value.
class Distribution {
 public:
  /// `name`: one of the first four. ERRORS: Error for another name (with the nearest), or a spread
  /// out of 0 … 10.
  static Distribution named(std::string_view name, double spread);
  /// Of sizes, whose mean is 1: the exponential one, too. ERRORS: those of named(), or a spread of
  /// the exponential one above 1.
  static Distribution of_sizes(std::string_view name, double spread);
  /// Lines "value,weight", with or without a first line of names; values and weights are not
  /// negative, some weight is positive. ERRORS: Error with file, line and field.
  static Distribution histogram(std::string_view text, const std::string& file);

  double draw(Rng& rng) const;

 private:
  enum class Kind { kNormal, kLognormal, kUniform, kExponential, kHistogram };
  Kind kind_ = Kind::kNormal;
  double spread_ = 0;
  double least_ = 1;  ///< of the exponential one
  std::vector<double> values_, cumulative_;
};

}  // namespace lockstep
