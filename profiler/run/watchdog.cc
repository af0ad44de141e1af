#include "profiler/run/watchdog.h"

#include <utility>

namespace lockstep {

Watchdog::Watchdog(double seconds, std::function<void()> stop)
    : patience_(
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
      stop_(std::move(stop)),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::progress() {
  const std::lock_guard lock(mutex_);
  const bool asleep = until_ == Clock::time_point::max();
  until_ = Clock::now() + patience_;
  if (asleep) {
    changed_.notify_all();
  }
}

void Watchdog::rest() {
  const std::lock_guard lock(mutex_);
  until_ = Clock::time_point::max();
}

bool Watchdog::has_barked() const {
  const std::lock_guard lock(mutex_);
  return barked_;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_ && !barked_) {
    const Clock::time_point until = until_;
    if (until == Clock::time_point::max()) {
      changed_.wait(lock);
    } else if (Clock::now() >= until) {
      barked_ = true;
      lock.unlock();
      stop_();
      lock.lock();
    } else {
      changed_.wait_until(lock, until);  // it may be later by then
    }
  }
}

}  // namespace lockstep
