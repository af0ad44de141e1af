#include "app/sweep/worker.h"

#include <deque>
#include <thread>
#include <utility>

namespace lockstep {

void work(SweepRunner& runner, Crew& crew) {
  std::deque<SweepTask> waiting;
  Patience patience;
  for (;;) {
    while (auto letter = crew.receive()) {
      if (letter->text == kStopLetter) {
        return;
      }
      waiting.push_back(task_of_letter(letter->text));
      patience.reset();
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
