#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/whatif/follow_state.h"

namespace lockstep {

/// What `whatif --follow` has seen so far, kept in a file of JSON lines that only grows.
///
/// The lines of one trace file are appended at once and flushed to disk; the last of them names the
/// file. What stands after the last such line is the work of a run that was cut off: it is taken
/// off when the journal is opened, and the trace file is read again. So no step is lost or
/// repeated, whenever the process dies. Format: docs/formats/follow-journal.md.
class FollowJournal {
 public:
  /// Opens or begins the journal, and holds a lock on it as long as this lives.
  /// ERRORS: it is another job's or of another meta file, or no journal; another process follows
  /// with it; it cannot be written.
  FollowJournal(std::string path, const FollowedJob& job, AlertRule rule);
  ~FollowJournal();
  /// The line that says what a journal is.
  static Json first_line(const FollowedJob& job);
  FollowJournal(const FollowJournal&) = delete;
  FollowJournal& operator=(const FollowJournal&) = delete;

  bool has(const TraceFile& file) const { return state_.files.count(file) > 0; }
  bool has_step(std::int64_t step) const { return state_.steps.count(step) > 0; }

  struct Step {
    std::int64_t step = 0;
    double slowdown = 1;  ///< T / I of the step
    double step_time_s = 0, ideal_step_time_s = 0;
    std::string pattern;
    std::int32_t slowest_rank = 0, slowest_stage = 0;
  };
  /// Takes the file's steps down, those that are new, and the alerts that follow from them.
  /// `evidence`: words for an alert. Returns the lines that were added.
  std::vector<Json> add_file(const TraceFile& file, const std::vector<Step>& steps,
                             const std::string& evidence);
  /// Takes down that the file cannot be used, and why.
  std::vector<Json> add_refused(const TraceFile& file, const std::string& reason);

  const FollowState& state() const { return state_; }

 private:
  void append(const std::vector<Json>& lines);
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  AlertRule rule_;
  int descriptor_ = -1;
  std::int64_t end_ = 0;  ///< of the last whole entry
  FollowState state_;
};

}  // namespace lockstep
