#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"

namespace lockstep {

/// A trace file as it lay in the folder; one that is written anew is another one.
struct TraceFile {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< since the epoch

  auto operator<=>(const TraceFile&) const = default;
};

/// Whose steps a journal has.
struct FollowedJob {
  std::string trial_name;
  std::string meta;  ///< fingerprint of what the meta file says
};

/// When an alert is raised: so many steps in a row that are so slow. As many that are not end it.
struct AlertRule {
  double slowdown = 1.1;
  std::int64_t steps = 3;
};

/// What the lines of a journal amount to: files and steps that are known, and whether an alert is
/// raised. Lines: docs/formats/follow-journal.md.
struct FollowState {
  std::set<TraceFile> files;
  std::set<std::int64_t> steps;
  std::int64_t slow_in_a_row = 0, fast_in_a_row = 0;
  double slow_sum = 0;  ///< of the slowdowns in a row
  bool alerted = false;

  /// Takes one line in. PRECONDITION: it has what its event needs, as check_line says.
  void apply(const Json& line, const AlertRule& rule);
};

inline constexpr std::string_view kFollowSchema = "lockstep-follow/1";

/// Whether the line is the last of an entry: those of a trace file are valid together or not at
/// all.
bool closes_entry(const Json& line);

/// Takes the whole entries of a journal's text in; returns how many bytes they are. What follows is
/// the work of a run that was cut off. 0 if not even the first line is whole.
/// ERRORS: the text is no journal, or that of another job or meta file; `file` is for messages.
std::size_t read_follow_journal(std::string_view text, const std::string& file,
                                const FollowedJob& job, const AlertRule& rule, FollowState& state);

}  // namespace lockstep
