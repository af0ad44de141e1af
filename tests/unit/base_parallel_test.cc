#include <atomic>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "tests/support/sanitized.h"

namespace lockstep::base_parallel_test {
namespace {

TEST(Parallel, EveryNumberOnceOnAnyNumberOfThreads) {
  for (const int threads : {0, 1, 2, 7, 200}) {
    std::vector<std::atomic<int>> calls(100);
    for_each_in_parallel(calls.size(), threads, [&](std::size_t i) { ++calls[i]; });
    for (const auto& count : calls) {
      EXPECT_EQ(count, 1) << threads;
    }
  }
  for_each_in_parallel(0, 3, [](std::size_t) { FAIL(); });
}

TEST(Parallel, OneThreadIsTheCallersAndKeepsTheOrder) {
  std::vector<std::size_t> order;
  const auto self = std::this_thread::get_id();
  for_each_in_parallel(5, 1, [&](std::size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), self);
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(Parallel, WhereTheSystemGivesNoThreadsTheCallerDoesAll) {
  if (testing::is_sanitized()) {
    GTEST_SKIP() << "a sanitizer takes more memory than any limit";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{1, 1};  // a new thread's stack has no room
    ::setrlimit(RLIMIT_AS, &none);
    int calls = 0;
    for_each_in_parallel(5, 4, [&](std::size_t) { ++calls; });
    ::_exit(calls);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

TEST(Parallel, TheErrorOfTheLowestNumberComesOut) {
  std::atomic<int> calls = 0;
  for (const int threads : {1, 4}) {
    try {
      for_each_in_parallel(20, threads, [&](std::size_t i) {
        ++calls;
        if (i == 3 || i == 11) {
          throw std::runtime_error(std::to_string(i));
        }
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "3");
    }
  }
  EXPECT_EQ(calls, 40);
}

}  // namespace
}  // namespace lockstep::base_parallel_test
