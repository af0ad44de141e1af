#include "topologies/ecmp_hash.h"

#include <bit>

namespace lockstep {
namespace {

std::uint32_t scramble(std::uint32_t word) {
  return std::rotl(word * 0xcc9e2d51U, 15) * 0x1b873593U;
}

std::uint32_t mix(std::uint32_t hash, std::uint32_t word) {
  return std::rotl(hash ^ scramble(word), 13) * 5 + 0xe6546b64U;
}

std::uint32_t finish(std::uint32_t hash, std::uint32_t length) {
  hash ^= length;
  hash = (hash ^ (hash >> 16)) * 0x85ebca6bU;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35U;
  return hash ^ (hash >> 16);
}

/// Up to four bytes as a little-endian word.
std::uint32_t word_of(std::string_view bytes) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

}  // namespace

std::uint32_t murmur3_x86_32(std::string_view bytes, std::uint32_t seed) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::uint32_t hash = seed;
  for (; bytes.size() >= 4; bytes.remove_prefix(4)) {
    hash = mix(hash, word_of(bytes.substr(0, 4)));
  }
  return finish(hash ^ scramble(word_of(bytes)), length);
}

std::uint32_t murmur3_x86_32(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                             std::uint32_t seed) {
  return finish(mix(mix(mix(seed, a), b), c), 12);
}

}  // namespace lockstep
