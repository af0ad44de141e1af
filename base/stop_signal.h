#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "base/error.h"

namespace lockstep {

namespace detail {
/// Set by a signal, read by all threads.
extern std::atomic<bool> stop_requested;
}  // namespace detail

/// Leaves work that was told to stop.
class Interrupted : public Error {
 public:
  Interrupted();
};

/// For loops of long work: throws Interrupted once a StopSignal has been told to stop. One load.
inline void throw_if_stopped() {
  if (detail::stop_requested.load(std::memory_order_relaxed)) [[unlikely]] {
    throw Interrupted();
  }
}

/// For commands that run until they are told to stop: while one of these lives, SIGINT and SIGTERM
/// set a flag instead of ending the process; a second one ends it. At most one at a time.
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

/// Says that the signals of this process are ours, not those of a program that we are part of. For
/// main().
void take_signals();

/// A StopSignal for commands that have something to show of work cut short; does nothing inside
/// another program, where the command may run on several threads at a time.
class Interruptible {
 public:
  Interruptible();
  bool stopped() const { return signal_ && signal_->requested(); }

 private:
  std::optional<StopSignal> signal_;
};

}  // namespace lockstep
