#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace lockstep {

/// How another program ended and what it said.
struct ProcessResult {
  int exit_code = 0;  ///< 128 + the signal if a signal ended it
  std::string out;
  std::string err;
};

struct ProcessOptions {
  std::string input;                     ///< text on standard input
  std::string folder = ".";              ///< working directory
  std::optional<std::string> out_to;     ///< file that takes standard output; result.out is empty
  std::vector<std::string> environment;  ///< "NAME=value", beside our own or in its place
  double seconds = 120;                  ///< then it is killed; infinite: never
  /// Asked now and then, where there is one: whether to kill it before its end.
  std::function<bool()> give_up;
};

/// A program that was killed since its time was over.
class OutOfTime : public Error {
 public:
  using Error::Error;
};

/// Runs a program to its end and keeps all it says in memory. The first word is its path, or a name
/// to find on PATH.
/// PRECONDITION: the command is not empty.
/// ERRORS: Error if the folder is missing or (kMissingPart) it cannot be started; OutOfTime if it
/// does not end in time, or is given up.
ProcessResult run_process(const std::vector<std::string>& command,
                          const ProcessOptions& options = {});

}  // namespace lockstep
