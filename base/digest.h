#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

/// A 128-bit fingerprint (XXH3) of what is added, piece by piece; a piece's length counts, so that
/// "ab", "c" is not "a", "bc". For telling equal from different, not against forgers.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  Digest& add(std::string_view piece);
  /// 32 hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The fingerprint of one text.
std::string digest_of(std::string_view text);

}  // namespace lockstep
