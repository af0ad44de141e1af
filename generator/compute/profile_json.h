#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "generator/exact/operator.h"
#include "generator/job.h"

namespace lockstep {

inline constexpr std::string_view kProfileSchema = "lockstep-profile/1";

/// What makes two operators the same measurement: kind, precision and the sizes that matter to the
/// kind (in the order of docs/formats/profile.md; the rest is 0).
struct OperatorKey {
  OperatorKind kind = OperatorKind::kMemory;
  Precision precision = Precision::kBf16;
  std::array<std::int64_t, 7> sizes{};
  bool causal = false;    ///< attention only
  bool backward = false;  ///< attention; what is bound by memory, if its work is known
  bool fused = true;      ///< attention only: one kernel that keeps no scores
  std::optional<MemoryWork> work = std::nullopt;  ///< what is bound by memory only: nothing, any
  friend auto operator<=>(const OperatorKey&, const OperatorKey&) = default;
};

/// ERRORS: bytes of a memory-bound operator that are no size (negative, not finite, above 2^62).
OperatorKey key_of(const Operator& op, Precision precision);

/// Whether the key says all of an operator's work. Not that of a fused attention of which a window
/// or the queries' place in the sequence (context parallelism by gathering keys) hides other scores
/// than its mask by itself: such a one is not measured, and has no measured time.
bool is_all_in_its_key(const Operator& op);

/// Measured times of one operator.
struct TimeDistribution {
  Time median;
  Time spread;  ///< between the quartiles
  std::int64_t samples = 1;
  friend bool operator==(const TimeDistribution&, const TimeDistribution&) = default;
};

/// The same bytes whatever is done with them: profiles may leave the work open.
OperatorKey of_any_work(OperatorKey key);

/// Times of operators measured on one GPU with one set of libraries.
struct OperatorProfile {
  std::string gpu;     ///< as gpu_spec() knows it, or any other
  std::string driver;  ///< empty: not known
  std::map<std::string, std::string> libraries;
  std::map<OperatorKey, TimeDistribution> times;

  /// Exactly this operator, or one with as many bytes of unknown work, or nothing. O(log size).
  std::optional<TimeDistribution> find(const OperatorKey& key) const;
  friend bool operator==(const OperatorProfile&, const OperatorProfile&) = default;
};

/// Reads docs/formats/profile.md. ERRORS: Error with the file and the place in the document: not
/// JSON, another schema, an unknown, missing or wrong field, an operator that stands twice.
OperatorProfile read_profile_json(std::string_view text, const std::string& file);

/// Operators in ascending order of their keys: the same profile is the same text. Reading it gives
/// the profile back, to the picosecond for times below an hour.
std::string to_profile_json(const OperatorProfile& profile);

}  // namespace lockstep
