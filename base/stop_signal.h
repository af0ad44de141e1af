#pragma once

#include <chrono>

namespace lockstep {

/// For commands that run until they are told to stop: while one of these lives, SIGINT and SIGTERM
/// set a flag instead of ending the process. At most one at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const;
  /// Sleeps, but not on after a signal. Returns requested().
  bool wait_for(std::chrono::milliseconds duration) const;

 private:
  struct Handlers;
  Handlers* before_;
};

}  // namespace lockstep
