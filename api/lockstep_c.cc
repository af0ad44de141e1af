#include <new>
#include <string>
#include <vector>

#include "api/lockstep/lockstep.h"
#include "app/build_facts.h"
#include "app/program.h"

struct lockstep_result {
  lockstep::ProgramResult program;
};

namespace {

const char* text_of(const std::string& text, size_t* size) {
  if (size != nullptr) {
    *size = text.size();
  }
  return text.c_str();
}

}  // namespace

lockstep_result* lockstep_run(size_t count, const char* const* arguments) {
  try {
    return new lockstep_result{
        lockstep::run_program_captured(std::vector<std::string>(arguments, arguments + count))};
  } catch (...) {
    return nullptr;  // run_program() tells all else
  }
}

int lockstep_exit_code(const lockstep_result* result) {
  return static_cast<int>(result->program.code);
}

const char* lockstep_output(const lockstep_result* result, size_t* size) {
  return text_of(result->program.out, size);
}

const char* lockstep_messages(const lockstep_result* result, size_t* size) {
  return text_of(result->program.err, size);
}

void lockstep_free(lockstep_result* result) { delete result; }

const char* lockstep_version(void) {
  static const std::string version(lockstep::build_facts().version);
  return version.c_str();
}
