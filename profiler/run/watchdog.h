#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep {

/// Calls `stop` once, from a thread of its own, when there has been no progress for so many
/// seconds. It sleeps until the first progress() and between rest() and the next one.
class Watchdog {
 public:
  Watchdog(double seconds, std::function<void()> stop);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void progress();
  void rest();
  /// Whether it has called `stop`.
  bool has_barked() const;

 private:
  using Clock = std::chrono::steady_clock;
  void watch();

  Clock::duration patience_;
  std::function<void()> stop_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point until_ = Clock::time_point::max();  ///< the last moment for progress
  bool ends_ = false, barked_ = false;
  std::thread thread_;
};

}  // namespace lockstep
