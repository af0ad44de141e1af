#include "app/serve/live_process.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <malloc.h>
#include <new>
#include <unistd.h>
#include <utility>
#include <vector>

#include "app/isolate/memory_limit.h"
#include "app/isolate/message.h"
#include "app/serve/api.h"
#include "app/serve/live_model.h"
#include "base/error.h"
#include "base/file_fence.h"
#include "base/json.h"

namespace lockstep {
namespace {

/// The model of this process and the flags it was loaded with.
struct Held {
  std::vector<std::string> arguments;
  std::optional<LiveModel> model;
  std::optional<LiveSliders> idle;  ///< where they stand, if there is something to prepare there
};

using Clock = std::chrono::steady_clock;

/// Models whose answers take longer are not prepared: who asks next would wait for that.
constexpr double kQuickSeconds = 0.5;
constexpr Time kIdle = Time::us(50'000);

/// Once nobody has moved a slider for a moment.
void prepare(int socket, Held& held) {
  const std::optional<LiveSliders> sliders = std::exchange(held.idle, std::nullopt);
  if (!sliders || wait_for_message(socket, kIdle)) {
    return;
  }
  try {
    held.model->prepare(*sliders);
  } catch (const std::bad_alloc&) {
    held.model.reset();
  } catch (const Error&) {
    // Who moves that slider is told.
  }
}

Json answer(const std::string& message, Held& held) {
  const Json request = parse_json(message, "request");
  const JsonView view(request, "request");
  constexpr std::array<std::string_view, 3> kKeys{"arguments", "sliders", "report"};
  view.allow_keys(kKeys);
  std::vector<std::string> arguments;
  view["arguments"].each([&](const JsonView& word) { arguments.push_back(word.string()); });
  const LiveSliders sliders =
      view.has("sliders") ? sliders_of(view["sliders"].json()) : LiveSliders{};
  std::optional<double> opened;
  if (!held.model || held.arguments != arguments) {
    const Clock::time_point begin = Clock::now();
    held.model.reset();
    held.model.emplace(arguments);
    held.arguments = arguments;
    opened = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  const bool report = view.has("report") && view["report"].boolean();
  Json reply = report ? held.model->evaluate_with_report(sliders) : held.model->evaluate(sliders);
  if (!report && reply["took_s"].get<double>() < kQuickSeconds) {
    held.idle = sliders;
  }
  if (opened) {
    reply["opened_s"] = *opened;
  }
  return reply;
}

}  // namespace

void serve_live_model(int socket, Bytes memory_limit, const std::string& files) {
  const bool may_read = !files.empty() && ::chdir(files.c_str()) == 0;
  fence_files(may_read ? std::vector<std::string>{files} : std::vector<std::string>(), {});
  limit_own_memory(memory_limit);
  // Memory of one simulation is that of the next: giving it back costs a third of its time.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  Held held;
  std::string message;
  while (receive_message(socket, message)) {
    Json reply;
    try {
      reply = answer(message, held);
    } catch (const std::bad_alloc&) {
      held.model.reset();
      reply = {{"error", "out of memory"}};
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    if (!send_message(socket, to_line(reply) + "\n")) {
      break;
    }
    prepare(socket, held);
  }
  ::_exit(0);
}

LiveProcess::LiveProcess(Time time_limit, Bytes memory_limit, const std::string& files)
    : time_limit_(time_limit),
      process_({}, {"live", std::to_string(memory_limit.count()), files}) {}

LiveProcess::~LiveProcess() { process_.kill(); }

bool LiveProcess::is_closed() {
  const std::scoped_lock lock(mutex_);
  return closed_;
}

/// Whether the process is this thread's now.
bool LiveProcess::take_turn(const std::function<bool()>& gone) {
  std::unique_lock lock(mutex_);
  if (asking_ > kMostWaiting) {
    return false;
  }
  ++asking_;
  bool unwanted = false;
  while (!freed_.wait_for(lock, kAskIfGone, [&] { return !busy_ || closed_; }) &&
         !(unwanted = gone && gone())) {
  }
  if (unwanted || closed_) {
    --asking_;
    return false;
  }
  busy_ = true;
  return true;
}

/// False where there will be none.
bool LiveProcess::await_answer(const std::function<bool()>& gone) {
  const Clock::time_point begin = Clock::now();
  while (true) {
    Time wait = Time::seconds(std::chrono::duration<double>(kAskIfGone).count());
    if (time_limit_ > Time()) {
      const double passed_s = std::chrono::duration<double>(Clock::now() - begin).count();
      wait = std::min(wait, time_limit_ - Time::seconds(passed_s));
    }
    if (wait <= Time()) {
      return false;
    }
    if (wait_for_message(process_.socket(), wait)) {
      return true;
    }
    if (gone && gone()) {
      return false;
    }
  }
}

std::optional<std::string> LiveProcess::answer_of(const std::string& message,
                                                  const std::function<bool()>& gone) {
  std::string reply;
  if (send_message(process_.socket(), message) && await_answer(gone) &&
      receive_message(process_.socket(), reply)) {
    return reply;
  }
  process_.kill();
  if (!is_closed()) {
    process_.restart();
  }
  return std::nullopt;
}

std::optional<std::string> LiveProcess::ask(const std::string& message,
                                            const std::function<bool()>& gone) {
  if (!take_turn(gone)) {
    return std::nullopt;
  }
  const auto leave = [&] {
    const std::scoped_lock lock(mutex_);
    busy_ = false;
    --asking_;
    freed_.notify_one();
  };
  try {
    std::optional<std::string> reply = answer_of(message, gone);
    leave();
    return reply;
  } catch (...) {
    leave();
    throw;
  }
}

void LiveProcess::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  freed_.notify_all();
  process_.hang_up();
}

}  // namespace lockstep
