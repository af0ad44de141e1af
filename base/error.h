#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// What a process of ours returns; part of the command contract.
enum class ExitCode : int {
  kDone = 0,
  kCheckFailed = 1,    ///< a check the user asked for failed
  kBadInput = 2,       ///< bad input or usage
  kMissingPart = 3,    ///< CUDA, ns-3, a GPU or another optional part is needed and absent
  kBug = 70,           ///< an invariant of ours broke
  kInterrupted = 130,  ///< stopped by SIGINT; what was done by then is shown where it is of use
};

/// Bad input, told so that the user can mend it: what is wrong, where, what was expected, a hint.
///
///     throw Error("unknown communication type 'ALLREDUC'")
///         .at(path, line, column).field("forward comm type")
///         .expected("NONE, ALLREDUCE, …").hint("did you mean ALLREDUCE?");
///
/// Whoever passes it on may add context ("while reading …"), innermost first. Only app/main.cc
/// prints it. Broken invariants are not Errors but LOCKSTEP_CHECK failures.
class Error : public std::exception {
 public:
  explicit Error(std::string message, ExitCode code = ExitCode::kBadInput);

  Error&& at(std::string_view file, std::size_t line = 0, std::size_t column = 0) &&;
  Error&& field(std::string_view name) &&;
  Error&& expected(std::string_view text) &&;
  Error&& hint(std::string_view text) &&;
  void add_context(std::string text);
  /// Sets the place unless an inner frame knew it already.
  void locate(std::string_view file, std::size_t line = 0);

  ExitCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& file() const { return file_; }
  std::size_t line() const { return line_; }
  /// The whole text: "file:line:column: field: message", then expected, hint and context lines.
  const char* what() const noexcept override { return rendered_.c_str(); }

 private:
  void render();

  ExitCode code_;
  std::string message_, file_, field_, expected_, hint_;
  std::size_t line_ = 0, column_ = 0;
  std::vector<std::string> context_;
  std::string rendered_;
};

/// Calls f; an Error that leaves it carries `context` ("while reading the workload a.txt").
template <class F>
decltype(auto) with_context(std::string_view context, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (Error& error) {
    error.add_context(std::string(context));
    throw;
  }
}

/// A broken invariant of ours: exit code 70.
class InternalError : public std::exception {
 public:
  explicit InternalError(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               const std::string& detail);

}  // namespace lockstep

/// Stops the run when an invariant of ours is broken. Never compiled out.
#define LOCKSTEP_CHECK(condition, detail)                                 \
  do {                                                                    \
    if (!(condition)) [[unlikely]] {                                      \
      ::lockstep::check_failed(#condition, __FILE__, __LINE__, (detail)); \
    }                                                                     \
  } while (false)
