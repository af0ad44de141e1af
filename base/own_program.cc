#include "base/own_program.h"

#include <system_error>

#include "base/error.h"
#include "base/find_program.h"

namespace lockstep {

namespace fs = std::filesystem;

namespace {

/// The kernel's name of the program of whichever process asks.
constexpr const char* kThisProgram = "/proc/self/exe";

bool& is_lockstep() {
  static bool of_process = false;
  return of_process;
}

}  // namespace

void this_program_is_lockstep() { is_lockstep() = true; }

fs::path own_program() {
  std::error_code ignored;
  return fs::read_symlink(kThisProgram, ignored);
}

fs::path lockstep_to_start() {
  if (is_lockstep()) {
    return kThisProgram;
  }
  fs::path found = find_program("lockstep");
  if (found.empty()) {
    throw Error("cannot find the program lockstep, whose processes run commands apart",
                ExitCode::kMissingPart)
        .expected("lockstep on PATH");
  }
  return found;
}

}  // namespace lockstep
