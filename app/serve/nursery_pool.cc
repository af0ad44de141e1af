#include "app/serve/nursery_pool.h"

#include <algorithm>
#include <chrono>

#include "app/serve/api.h"

namespace lockstep {

NurseryPool::NurseryPool(int size, int waiting) : may_wait_(waiting) {
  for (int i = 0; i < size; ++i) {
    nurseries_.push_back(std::make_unique<Nursery>());
    free_.push_back(nurseries_.back().get());
  }
}

namespace {

IsolatedResult run_while_wanted(Nursery& nursery, const IsolatedTask& task,
                                const std::function<bool()>& gone) {
  nursery.start(task);
  while (gone && !nursery.ready(kAskIfGone)) {
    if (gone()) {
      nursery.cancel();
      break;
    }
  }
  return nursery.finish();
}

}  // namespace

std::optional<IsolatedResult> NurseryPool::run(const IsolatedTask& task,
                                               const std::function<bool()>& gone) {
  Nursery* nursery = nullptr;
  {
    std::unique_lock lock(mutex_);
    if (free_.empty()) {
      if (may_wait_ == 0 || closed_) {
        return std::nullopt;
      }
      --may_wait_;
      bool unwanted = false;
      while (!freed_.wait_for(lock, kAskIfGone, [&] { return !free_.empty() || closed_; }) &&
             !(unwanted = gone && gone())) {
      }
      ++may_wait_;
      if (unwanted) {
        return std::nullopt;
      }
    }
    if (closed_) {
      return std::nullopt;
    }
    nursery = free_.back();
    free_.pop_back();
  }
  std::optional<IsolatedResult> result;
  try {
    result = run_while_wanted(*nursery, task, gone);
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(nursery);
    freed_.notify_one();
    throw;
  }
  const std::scoped_lock lock(mutex_);
  free_.push_back(nursery);
  freed_.notify_one();
  return result;
}

void NurseryPool::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  freed_.notify_all();
  for (const std::unique_ptr<Nursery>& nursery : nurseries_) {
    if (std::ranges::find(free_, nursery.get()) == free_.end()) {
      nursery->cancel();
    }
  }
}

}  // namespace lockstep
