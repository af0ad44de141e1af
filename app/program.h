#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace lockstep {

/// How a command line ended, and what it said.
struct ProgramResult {
  ExitCode code = ExitCode::kDone;
  std::string out;  ///< what went to standard output
  std::string err;  ///< messages; the last is the error, if any
  bool out_of_memory = false;
};

/// Runs the command line `lockstep <arguments>` on the standard streams of the calling thread
/// (base/output_capture.h), whatever happens: errors become a message and an exit code. If
/// `out_of_memory` is given, it says whether that was the error.
ExitCode run_program(const std::vector<std::string>& arguments, bool* out_of_memory = nullptr);

/// The same inside another program: nothing reaches the process's streams, except what threads of
/// the command say. Several threads may do so at once.
ProgramResult run_program_captured(const std::vector<std::string>& arguments);

/// The command line of the run under way on this thread, without the program's name; empty where
/// none is.
std::vector<std::string> program_arguments();

}  // namespace lockstep
