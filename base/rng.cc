#include "base/rng.h"

#include <bit>

#include "base/error.h"

namespace lockstep {
namespace {

__extension__ using UnsignedWide = unsigned __int128;

std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  return hash;
}

}  // namespace

Rng::Rng(std::uint64_t seed, std::string_view stream) {
  std::uint64_t mix = seed;
  mix = split_mix(mix) ^ fnv1a(stream);
  for (std::uint64_t& word : state_) {
    word = split_mix(mix);
  }
}

std::uint64_t Rng::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

std::uint64_t Rng::below(std::uint64_t n) {
  LOCKSTEP_CHECK(n > 0, "Rng::below needs a positive bound");
  UnsignedWide product = static_cast<UnsignedWide>(next()) * n;
  if (static_cast<std::uint64_t>(product) < n) {
    const std::uint64_t threshold = (0 - n) % n;
    while (static_cast<std::uint64_t>(product) < threshold) {
      product = static_cast<UnsignedWide>(next()) * n;
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::int64_t Rng::between(std::int64_t low, std::int64_t high) {
  LOCKSTEP_CHECK(low <= high, "Rng::between needs low <= high");
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  const std::uint64_t offset = span == 0 ? next() : below(span);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

double uniform_of(std::initializer_list<std::uint64_t> key) {
  std::uint64_t mix = 0;
  for (const std::uint64_t word : key) {
    mix = split_mix(mix) ^ word;
  }
  return static_cast<double>(split_mix(mix) >> 11) * 0x1.0p-53;
}

}  // namespace lockstep
