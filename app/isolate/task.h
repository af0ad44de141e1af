#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// A command line to be run apart from this process, and what it may use.
struct IsolatedTask {
  std::vector<std::string> arguments;  ///< without the program's name
  std::string folder;                  ///< working directory; empty: ours
  Time time_limit{};                   ///< of the wall clock; 0: none
  Bytes memory_limit{};                ///< written memory of each of its processes; 0: none
  Bytes output_limit{};  ///< of each file that it writes and of what it prints; 0: none
  /// Of a stranger: it opens the files of its folder and, to read, of `readable` alone
  /// (base/file_fence.h).
  bool confined = false;
  std::vector<std::string> readable;  ///< absolute
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

}  // namespace lockstep
