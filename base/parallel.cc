#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace lockstep {

void for_each_in_parallel(std::size_t count, int threads,
                          const std::function<void(std::size_t)>& f) {
  LOCKSTEP_CHECK(threads >= 0, "a number of threads");
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t most = threads > 0 ? static_cast<std::size_t>(threads) : cores;
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        f(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(most, count); ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the system gives no more: those that there are do all of it
    }
  }
  work();
  others.clear();  // joins
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
}

}  // namespace lockstep
