#pragma once

#include <cstddef>
#include <lockstep/lockstep.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// The C++ interface of Lockstep, over the C one: nothing but standard types, so that it stays the
/// same when the library changes.
namespace lockstep::api {

/// A command line that did not end well. what() is its messages.
class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& messages)
      : std::runtime_error(messages), exit_code_(exit_code) {}
  /// 1 a check that was asked for failed, 2 bad input, 3 a needed part is missing, 70 a bug.
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

struct Result {
  int exit_code = 0;
  std::string output;    ///< with --json, one JSON document
  std::string messages;  ///< warnings and the error
};

/// Runs `lockstep <arguments>` in this process. Thread-safe. ERRORS: std::bad_alloc alone.
inline Result run(const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(argument.c_str());
  }
  const std::unique_ptr<lockstep_result, void (*)(lockstep_result*)> result(
      lockstep_run(pointers.size(), pointers.data()), lockstep_free);
  if (result == nullptr) {
    throw std::bad_alloc();
  }
  std::size_t size = 0;
  const char* output = lockstep_output(result.get(), &size);
  Result copy{lockstep_exit_code(result.get()), std::string(output, size), {}};
  const char* messages = lockstep_messages(result.get(), &size);
  copy.messages.assign(messages, size);
  return copy;
}

/// What `lockstep <command> <flags>` prints. ERRORS: Failure unless it ends with 0.
inline std::string output_of(const std::string& command, std::vector<std::string> flags) {
  flags.insert(flags.begin(), command);
  Result result = run(flags);
  if (result.exit_code != 0) {
    throw Failure(result.exit_code, result.messages);
  }
  return std::move(result.output);
}

// The commands, each with the flags of the command line and the JSON document that it prints with
// --json (docs/formats). ERRORS: Failure.

inline std::string simulate(std::vector<std::string> flags) {
  flags.emplace_back("--json");
  return output_of("simulate", std::move(flags));
}
inline std::string whatif(std::vector<std::string> flags) {
  flags.emplace_back("--json");
  return output_of("whatif", std::move(flags));
}
inline std::string compare(std::vector<std::string> flags) {
  flags.emplace_back("--json");
  return output_of("compare", std::move(flags));
}
inline std::string plan(std::vector<std::string> flags) {
  flags.emplace_back("--json");
  return output_of("plan", std::move(flags));
}
/// The workload's text, in the format that the flags name.
inline std::string generate(std::vector<std::string> flags) {
  flags.insert(flags.end(), {"-o", "-"});
  return output_of("generate", std::move(flags));
}
/// The topology's text.
inline std::string build_topology(std::vector<std::string> flags) {
  flags.insert(flags.begin(), "build");
  flags.insert(flags.end(), {"-o", "-"});
  return output_of("topology", std::move(flags));
}

}  // namespace lockstep::api
