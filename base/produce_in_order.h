#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {

/// Makes the items of `count` parts on `threads` threads and takes them on the calling one, part by
/// part, as if one thread had made them: produce(part, emit) calls emit(item) for each item of its
/// part, take(item) sees those of part 0 first. At most `ahead` items a thread are made and not
/// taken. Where a call throws, the items before it are taken, the threads are stopped, and the
/// error is thrown again. PRECONDITION: threads and ahead > 0.
template <class Item, class Produce, class Take>
void produce_in_order(std::size_t count, std::size_t threads, std::size_t ahead, Produce&& produce,
                      Take&& take) {
  struct Part {
    std::deque<Item> items;
    std::exception_ptr error;
    bool done = false;
  };
  struct Stopped {};  // thrown through produce where nobody takes its items any more
  std::vector<Part> parts(count);
  std::mutex mutex;
  std::condition_variable made, taken;
  std::atomic<std::size_t> next = 0;
  bool stopped = false;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      Part& part = parts[i];
      std::exception_ptr error;
      try {
        produce(i, [&](Item&& item) {
          std::unique_lock lock(mutex);
          taken.wait(lock, [&] { return stopped || part.items.size() < ahead; });
          if (stopped) {
            throw Stopped();
          }
          part.items.push_back(std::move(item));
          made.notify_one();
        });
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      part.error = error;
      part.done = true;
      made.notify_one();
      if (stopped) {
        return;
      }
    }
  };
  std::vector<std::thread> workers;
  const auto finish = [&] {
    {
      const std::lock_guard lock(mutex);
      stopped = true;
      taken.notify_all();
    }
    for (std::thread& worker : workers) {
      worker.join();
    }
  };
  try {
    for (std::size_t t = 0; t < std::min(threads, count); ++t) {
      try {
        workers.emplace_back(work);
      } catch (const std::system_error&) {
        if (t == 0) {
          throw;
        }
        break;  // the system gives no more: those that there are do all of it
      }
    }
    for (Part& part : parts) {
      for (;;) {
        std::unique_lock lock(mutex);
        made.wait(lock, [&] { return part.done || !part.items.empty(); });
        if (part.items.empty()) {
          break;
        }
        Item item = std::move(part.items.front());
        part.items.pop_front();
        taken.notify_all();
        lock.unlock();
        take(std::move(item));
      }
      if (part.error) {
        std::rethrow_exception(part.error);
      }
    }
  } catch (...) {
    finish();
    throw;
  }
  finish();
}

}  // namespace lockstep
