#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "app/isolate/service_process.h"
#include "base/units.h"

namespace lockstep {

/// A live model in a process of its own, so that neither its memory, its time nor a crash are ours.
/// The process is started at construction and holds one model, the one asked for last; it is ended
/// and made anew when an answer takes too long.
///
/// A message is {"arguments": [flags of simulate], "sliders": {…}, "report": bool}; the answer is
/// that of LiveModel::evaluate() or evaluate_with_report(), with "opened_s" where the model had to
/// be loaded, or {"error": text}.
class LiveProcess {
 public:
  /// Flags may name files below the folder `files`, by names from there on; none where it is empty.
  LiveProcess(Time time_limit, Bytes memory_limit, const std::string& files);
  ~LiveProcess();
  LiveProcess(const LiveProcess&) = delete;
  LiveProcess& operator=(const LiveProcess&) = delete;

  /// No value where the process was ended. Of several threads one after the other; at most
  /// kMostWaiting wait, others get no value at once: a slow model must not take up all threads. It
  /// is ended, or waits no longer, when `gone` (if it is not empty) says that nobody wants the
  /// answer, which is asked now and then; and none is given after close().
  std::optional<std::string> ask(const std::string& message,
                                 const std::function<bool()>& gone = {});
  static constexpr int kMostWaiting = 1;
  /// Who asks gets no value, at once. From any thread.
  void close();

 private:
  bool take_turn(const std::function<bool()>& gone);
  std::optional<std::string> answer_of(const std::string& message,
                                       const std::function<bool()>& gone);
  bool await_answer(const std::function<bool()>& gone);
  bool is_closed();

  Time time_limit_;
  std::mutex mutex_;
  std::condition_variable freed_;
  int asking_ = 0;
  bool busy_ = false, closed_ = false;
  ServiceProcess process_;  ///< of the thread that is busy with it; hang_up() of any
};

/// The life of that process: answers what comes from the socket, until the other side has gone.
[[noreturn]] void serve_live_model(int socket, Bytes memory_limit, const std::string& files);

}  // namespace lockstep
