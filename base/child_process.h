#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace lockstep {

/// Another program that runs beside ours and is spoken to over its standard input and output; its
/// standard error is ours. It ends with this object: by the end of its input, or killed if it does
/// not end within a second of that, whatever it still says.
class ChildProcess {
 public:
  /// The first word of `command` is the program's path, or a name to find on PATH.
  /// ERRORS: Error if it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Blocks until all is written; the other side is to be silent until then. ERRORS: Error
  /// (kMissingPart: it is not the program that it should be, or somebody ended it) if it is not, or
  /// has gone.
  void write(std::span<const char> bytes);
  /// Blocks until the span is full. ERRORS: Error if the other side has gone before.
  void read(std::span<char> bytes);

  /// Ends it at once: what it says makes no sense.
  void kill();

 private:
  [[noreturn]] void gone();

  std::string name_;
  pid_t child_ = -1;
  int socket_ = -1;
};

}  // namespace lockstep
