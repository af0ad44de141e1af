#include "base/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

namespace lockstep {

struct Digest::State {
  XXH3_state_t hash;
};

Digest::Digest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }

Digest::~Digest() = default;

Digest& Digest::add(std::string_view piece) {
  const std::uint64_t size = piece.size();
  XXH3_128bits_update(&state_->hash, &size, sizeof size);
  XXH3_128bits_update(&state_->hash, piece.data(), piece.size());
  return *this;
}

std::string Digest::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string digest_of(std::string_view text) { return Digest().add(text).hex(); }

}  // namespace lockstep
