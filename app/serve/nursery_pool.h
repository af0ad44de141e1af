#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "app/isolate/nursery.h"

namespace lockstep {

/// Several nurseries for several threads: at most `size` commands run at once, at most `waiting`
/// more wait.
class NurseryPool {
 public:
  NurseryPool(int size, int waiting);

  /// Runs the task when there is a free nursery; no value where too many wait already, or after
  /// close(). It is ended, or waits no longer, when `gone` (if it is not empty) says that nobody
  /// wants the result, which is asked now and then. Thread-safe.
  std::optional<IsolatedResult> run(const IsolatedTask& task,
                                    const std::function<bool()>& gone = {});
  /// Who waits gives up; what runs is ended.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Nursery>> nurseries_;
  std::vector<Nursery*> free_;
  int may_wait_;
  bool closed_ = false;
};

}  // namespace lockstep
