#pragma once

#include <chrono>
#include <string>

#include "app/isolate/service_process.h"
#include "app/isolate/task.h"

namespace lockstep {

/// Runs command lines of this program in children of a small process of its own, a copy of
/// lockstep: one at a time, each in a fresh fork. So a crash, a runaway or a lack of memory ends
/// the one command alone; starting one costs well under a millisecond, since nothing is loaded
/// again; and a parent with threads, MPI or much memory never forks itself. When this object goes,
/// or the parent dies in any way, its processes end at once.
class Nursery {
 public:
  /// `program`: the lockstep to start; empty: this one (lockstep_to_start()). ERRORS: Error where
  /// no process can be made.
  explicit Nursery(std::string program = {});

  /// PRECONDITION: not busy().
  void start(const IsolatedTask& task);
  bool busy() const { return busy_; }
  /// Whether finish() would not wait, after waiting for that at most so long.
  bool ready(std::chrono::microseconds wait);
  /// Readable when the result begins to arrive; for poll().
  int descriptor() const { return process_.socket(); }
  /// Waits for the result. If the small process itself was killed, the command counts as crashed
  /// and a new process is started. PRECONDITION: busy().
  IsolatedResult finish();
  /// Ends the command that runs, if any: finish() says that it crashed. From any thread.
  void cancel();
  /// start() and finish().
  IsolatedResult run(const IsolatedTask& task);

 private:
  ServiceProcess process_;
  bool busy_ = false;
};

}  // namespace lockstep
