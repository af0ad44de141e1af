#include "app/sweep/worker.h"

#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "app/sweep/same_files.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

bool work(SweepRunner& runner, Crew& crew, const std::function<bool()>& signalled,
          std::chrono::milliseconds grace) {
  std::optional<Clock::time_point> until;
  std::deque<SweepTask> waiting;
  Patience patience;
  for (;;) {
    while (auto letter = crew.receive()) {
      if (letter->text == kStopLetter) {
        return true;
      }
      if (is_question(letter->text)) {
        crew.send(0, letter_of_answer(letter->text));
        continue;
      }
      waiting.push_back(task_of_letter(letter->text));
      patience.reset();
    }
    if (!until && signalled()) {
      until = Clock::now() + grace;
    }
    if (until && Clock::now() >= *until) {
      return false;
    }
    if (!runner.busy() && !waiting.empty()) {
      runner.start(std::move(waiting.front()));
      waiting.pop_front();
    }
    if (!runner.busy()) {
      std::this_thread::sleep_for(patience.next());
    } else if (runner.ready(patience.next())) {
      crew.send(0, to_line(runner.finish()));
      patience.reset();
    }
  }
}

}  // namespace lockstep
