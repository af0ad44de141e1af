#pragma once

#include <condition_variable>
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
  /// close(). Thread-safe.
  std::optional<IsolatedResult> run(const IsolatedTask& task);
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
