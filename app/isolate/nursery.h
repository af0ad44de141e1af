#pragma once

#include <chrono>
#include <sys/types.h>

#include "app/isolate/task.h"

namespace lockstep {

/// Runs command lines of this program in children of a small process that is forked from this one
/// at construction: one at a time, each in a fresh copy. So a crash, a runaway or a lack of memory
/// ends the one command alone; starting one costs well under a millisecond, since nothing is
/// loaded again; and a parent with threads, MPI or much memory never forks itself. When this
/// object goes, or the parent dies in any way, its processes end at once.
///
/// Construct it before the process starts threads. ERRORS: Error where no process can be made.
class Nursery {
 public:
  Nursery();
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  /// PRECONDITION: not busy().
  void start(const IsolatedTask& task);
  bool busy() const { return busy_; }
  /// Whether finish() would not wait, after waiting for that at most so long.
  bool ready(std::chrono::microseconds wait);
  /// Readable when the result begins to arrive; for poll().
  int descriptor() const { return socket_; }
  /// Waits for the result. If the small process itself was killed, the command counts as crashed
  /// and a new process is forked. PRECONDITION: busy().
  IsolatedResult finish();
  /// Ends the command that runs, if any: finish() says that it crashed. From any thread.
  void cancel();
  /// start() and finish().
  IsolatedResult run(const IsolatedTask& task);

 private:
  void fork_server();
  void end_server();

  pid_t server_ = -1;
  int socket_ = -1;
  bool busy_ = false;
};

}  // namespace lockstep
