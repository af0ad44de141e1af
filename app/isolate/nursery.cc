#include "app/isolate/nursery.h"

#include <csignal>
#include <poll.h>
#include <utility>

#include "app/isolate/message.h"
#include "base/error.h"

namespace lockstep {

Nursery::Nursery(std::string program) : process_(std::move(program), {"tasks"}) {}

void Nursery::start(const IsolatedTask& task) {
  LOCKSTEP_CHECK(!busy_, "a nursery runs one command at a time");
  if (!send_message(descriptor(), to_message(task))) {
    process_.hang_up();
    process_.restart();
    if (!send_message(descriptor(), to_message(task))) {
      throw Error("the process that runs commands apart ends at once");
    }
  }
  busy_ = true;
}

bool Nursery::ready(std::chrono::microseconds wait) {
  pollfd readable{descriptor(), POLLIN, 0};
  const timespec limit{wait.count() / 1'000'000, wait.count() % 1'000'000 * 1000};
  return ::ppoll(&readable, 1, &limit, nullptr) > 0;
}

IsolatedResult Nursery::finish() {
  LOCKSTEP_CHECK(busy_, "no command runs in this nursery");
  std::string message;
  busy_ = false;
  if (receive_message(descriptor(), message)) {
    return result_of_message(message);
  }
  process_.hang_up();
  process_.restart();
  return {.ending = Ending::kCrashed,
          .exit_code = 128 + SIGKILL,
          .out = {},
          .err = {},
          .reason = "the process that ran it was killed"};
}

void Nursery::cancel() { process_.hang_up(); }

IsolatedResult Nursery::run(const IsolatedTask& task) {
  start(task);
  return finish();
}

}  // namespace lockstep
