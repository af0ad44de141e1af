#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// A command line to be run apart from this process, and what it may use.
struct IsolatedTask {
  std::vector<std::string> arguments;  ///< without the program's name
  std::string folder;                  ///< working directory; empty: ours
  Time time_limit{};                   ///< of the wall clock; 0: none
  Bytes memory_limit{};                ///< written memory of each of its processes; 0: none
};

/// How such a command ended.
enum class Ending {
  kDone,         ///< exit code 0
  kCheckFailed,  ///< exit code 1: it ran, and a check of the user's failed
  kBadInput,     ///< exit code 2
  kMissingPart,  ///< exit code 3
  kBug,          ///< exit code 70
  kTimedOut,
  kOutOfMemory,
  kCrashed,  ///< ended by a signal, or it left without an answer
};

/// "done", "check-failed", "bad-input", "missing-part", "bug", "timed-out", "out-of-memory",
/// "crashed".
std::string_view to_text(Ending ending);
/// ERRORS: Error where the name is none of these.
Ending ending_named(std::string_view name);

struct IsolatedResult {
  Ending ending = Ending::kDone;
  int exit_code = 0;            ///< 128 + the signal where one ended it
  std::string out, err;         ///< what it wrote to its standard streams
  std::string reason;           ///< of an end that is not kDone, in one line
  double wall_s = 0;            ///< from its start to its end
  double cpu_s = 0;             ///< its own and that of its children, user and system
  std::int64_t peak_bytes = 0;  ///< its largest resident memory
};

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
