#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace lockstep {

/// A stream of random numbers, named so that a new consumer does not shift another's draws:
/// Rng(seed, "straggler/rank 7"). The same seed and name give the same numbers on every platform
/// and in every version of the standard library (whose distributions we therefore do not use).
///
/// Generator: xoshiro256** (Blackman, Vigna: Scrambled Linear Pseudorandom Number Generators,
/// 2021), seeded by SplitMix64 from the seed and the FNV-1a hash of the name.
class Rng {
 public:
  Rng(std::uint64_t seed, std::string_view stream);

  std::uint64_t next();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in [0, n), without bias (Lemire's method). PRECONDITION: n > 0.
  std::uint64_t below(std::uint64_t n);
  /// Uniform in [low, high]. PRECONDITION: low <= high.
  std::int64_t between(std::int64_t low, std::int64_t high);

 private:
  std::array<std::uint64_t, 4> state_;
};

/// A draw that depends on these numbers alone: uniform in [0, 1), 53 bits (SplitMix64).
double uniform_of(std::initializer_list<std::uint64_t> key);

}  // namespace lockstep
