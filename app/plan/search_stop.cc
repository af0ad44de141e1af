#include "app/plan/search_stop.h"

#include <chrono>

#include <fmt/format.h>

#include "app/flag_value.h"
#include "base/output_capture.h"
#include "base/units.h"

namespace lockstep {

std::function<bool()> stop_after(const std::string& deadline) {
  if (deadline.empty()) {
    return {};
  }
  const Time most = flag_value("--deadline", deadline, parse_time);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(most.count_ps() / 1000);
  return [end] { return std::chrono::steady_clock::now() >= end; };
}

ExitCode say_stopped(const std::string& what, bool writes) {
  fmt::print(standard_error(), "lockstep: stopped: {}{}\n", what,
             writes ? "; no file is written" : "");
  return ExitCode::kInterrupted;
}

}  // namespace lockstep
