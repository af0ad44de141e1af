#include "base/stop_signal.h"

#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/temporary_files.h"

namespace lockstep {

std::atomic<bool> detail::stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // else no signal may set it

namespace {

using detail::stop_requested;

bool signals_are_ours = false;  // set once, before there are threads

extern "C" void request_stop(int number) {
  const int before = errno;             // of the call that was interrupted
  if (stop_requested.exchange(true)) {  // whoever asks twice does not want to wait
    remove_temporary_files();
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  errno = before;
}

}  // namespace

Interrupted::Interrupted() : Error("stopped", ExitCode::kInterrupted) {}

struct StopSignal::Handlers {
  struct sigaction interrupt {
  }, terminate{};
};

StopSignal::StopSignal() : before_(new Handlers) {
  stop_requested = false;
  struct sigaction action {};
  action.sa_handler = request_stop;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_->interrupt);
  sigaction(SIGTERM, &action, &before_->terminate);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &before_->interrupt, nullptr);
  sigaction(SIGTERM, &before_->terminate, nullptr);
  stop_requested = false;
  delete before_;
}

bool StopSignal::requested() const { return stop_requested; }

bool StopSignal::wait_for(std::chrono::milliseconds duration) const {
  // Short naps: a signal between the question and the sleep is noticed at the next one.
  const auto end = std::chrono::steady_clock::now() + duration;
  while (!requested() && std::chrono::steady_clock::now() < end) {
    constexpr timespec kNap{0, 20'000'000};
    nanosleep(&kNap, nullptr);
  }
  return requested();
}

void take_signals() { signals_are_ours = true; }

Interruptible::Interruptible() {
  if (signals_are_ours) {
    signal_.emplace();
  }
}

}  // namespace lockstep
