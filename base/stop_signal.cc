#include "base/stop_signal.h"

#include <csignal>
#include <ctime>

namespace lockstep {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

extern "C" void request_stop(int) { stop_requested = 1; }

}  // namespace

struct StopSignal::Handlers {
  struct sigaction interrupt {
  }, terminate{};
};

StopSignal::StopSignal() : before_(new Handlers) {
  stop_requested = 0;
  struct sigaction action {};
  action.sa_handler = request_stop;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_->interrupt);
  sigaction(SIGTERM, &action, &before_->terminate);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &before_->interrupt, nullptr);
  sigaction(SIGTERM, &before_->terminate, nullptr);
  delete before_;
}

bool StopSignal::requested() const { return stop_requested != 0; }

bool StopSignal::wait_for(std::chrono::milliseconds duration) const {
  // Short naps: a signal between the question and the sleep is noticed at the next one.
  const auto end = std::chrono::steady_clock::now() + duration;
  while (!requested() && std::chrono::steady_clock::now() < end) {
    constexpr timespec kNap{0, 20'000'000};
    nanosleep(&kNap, nullptr);
  }
  return requested();
}

}  // namespace lockstep
