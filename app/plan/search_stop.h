#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "base/stop_signal.h"

namespace lockstep {

/// Whether a search has run for longer than --deadline; empty if `deadline` is. ERRORS: Error of
/// the flag.
std::function<bool()> stop_after(const std::string& deadline);

/// Says on standard error what Ctrl-C means for `what`. Returns its exit code.
ExitCode say_stopped(const std::string& what, bool writes);

/// What ends a search with what it has: Ctrl-C, and --deadline. While one lives, signals do not end
/// the process.
class SearchStop {
 public:
  /// ERRORS: as stop_after().
  explicit SearchStop(const std::string& deadline) : over_(stop_after(deadline)) {}

  /// By Ctrl-C: then no file is written, and the exit code says so.
  bool interrupted() const { return signal_.stopped(); }
  /// To be asked by the search, on any thread. Looks at the clock.
  std::function<bool()> asked() const {
    return [this] { return interrupted() || (over_ && over_()); };
  }
  /// The exit code; say_stopped() if interrupted().
  ExitCode ended(const std::string& what, bool writes) const {
    return interrupted() ? say_stopped(what, writes) : ExitCode::kDone;
  }

 private:
  Interruptible signal_;
  std::function<bool()> over_;
};

}  // namespace lockstep
