#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"

namespace lockstep {

/// Larger AIOB files are refused; real ones have a kilobyte.
inline constexpr std::int64_t kMaxAiobBytes = std::int64_t{16} << 20;

/// What an AIOB file says: the averages and minima of its sections, in file order, as AICB scans
/// it. Values are in the file's microseconds.
struct AiobSection {
  struct Value {
    bool average = false;  ///< time_gpu_avg; otherwise time_gpu_min
    double us = 0;
  };
  std::string name;  ///< may repeat
  std::vector<Value> values;
};

/// Scans an AIOB compute-time file with AICB's patterns (specification section 2.5): a line that
/// begins with a word and ':' opens a section, so none behind a byte order mark; "time_gpu_avg:",
/// blanks and digits anywhere in a line give a value. Digits are [0-9]+ with an optional fraction:
/// ".5" is nothing, "1e-05" is 1. Lines end at CR, LF or both. Anything else is passed over; no
/// text is an error. O(size).
std::vector<AiobSection> read_aiob_sections(std::string_view text);

/// Tells of lines whose time that reading does not take as it stands there: one with a sign or an
/// exponent, or that is cut; and of a section lost to a byte order mark. O(size).
void warn_of_aiob_times(std::string_view text, Warnings& warnings);

/// Compute times by name, in nanoseconds, as AICB's training generators look them up.
class ComputeProfile {
 public:
  struct Entry {
    std::string name;
    std::int64_t ns = 0;
  };

  /// Sections that contain "atten" add to attention (twice for "flash" ones with `recompute`),
  /// those that contain "mlp" to mlp, layernorm and layernorm2 likewise; param_time gives grad; the
  /// others and the five linear layers of MLA stand under their own name.
  ///
  /// ERRORS: a sum that does not fit in nanoseconds.
  static ComputeProfile from_aiob(std::string_view text, bool recompute);
  /// That of a file, with warn_of_aiob_times(). ERRORS: those of FileText; there is no time in it.
  static ComputeProfile read_aiob(const std::string& path, bool recompute, Warnings& warnings);

  /// All entries: attention, mlp and grad forward and backward, others in file order, MLA's.
  const std::vector<Entry>& entries() const { return entries_; }
  std::optional<std::int64_t> find(std::string_view name) const;

  enum class Pass { kForward, kBackward };
  /// The time of a layer named e.g. "attention_column": its own entry (unless that is 1), else that
  /// of the name before the first '_' ("final" is timed as attention, "embedding" as Emb), else 1.
  std::int64_t layer_time(std::string_view layer, Pass pass) const;
  /// The time of the gradient: grad_forward or grad_backward.
  std::int64_t grad_time(Pass pass) const { return stage_time("grad", pass); }
  std::int64_t embedding_time() const { return stage_time("embedding", Pass::kForward); }

 private:
  std::int64_t stage_time(std::string_view stage, Pass pass) const;

  std::vector<Entry> entries_;
};

}  // namespace lockstep
