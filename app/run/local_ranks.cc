#include "app/run/local_ranks.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "app/terminal.h"
#include "base/own_program.h"

namespace lockstep {
namespace {

pid_t start(const std::string& program, std::vector<std::string> words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const int errors = unsilenced_error();  // a rank that is to be quiet is so by itself
  const pid_t child = ::fork();
  if (child == 0) {
    // However this process ends, no rank goes on without it.
    (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)::dup2(errors, STDERR_FILENO);
    if (::getppid() == parent) {
      (void)::execv(program.c_str(), arguments.data());
    }
    ::_exit(static_cast<int>(ExitCode::kMissingPart));
  }
  return child;
}

void stop_all(const std::vector<pid_t>& children, const std::vector<bool>& ended) {
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    if (!ended[rank]) {
      ::dprintf(unsilenced_error(), "lockstep: rank %zu is stopped: another has failed\n", rank);
      (void)::kill(children[rank], SIGTERM);
    }
  }
}

/// Waits for all, the first that ends first; other children of this process, which may be of a
/// program that we are part of, are left alone. The first that fails gives the code; who has not
/// ended by itself a little later is stopped, as it may wait for that one.
ExitCode wait_for(const std::vector<pid_t>& children) {
  auto code = ExitCode::kDone;
  std::vector<bool> ended(children.size());
  constexpr std::chrono::seconds kPatience{3};
  auto stop = std::chrono::steady_clock::time_point::max();
  bool stopped = false;
  for (std::size_t left = children.size(); left > 0;) {
    const std::size_t before = left;
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
      int status = 0;
      const pid_t child = ended[rank] ? 0 : ::waitpid(children[rank], &status, WNOHANG);
      if (child == 0 || (child < 0 && errno == EINTR)) {
        continue;
      }
      ended[rank] = true;
      --left;
      auto own = ExitCode::kCheckFailed;
      if (child > 0 && WIFEXITED(status)) {
        own = static_cast<ExitCode>(WEXITSTATUS(status));
      } else if (child > 0 && !stopped) {
        ::dprintf(unsilenced_error(), "lockstep: rank %zu was ended by signal %d (%s)\n", rank,
                  WTERMSIG(status), ::strsignal(WTERMSIG(status)));
      }
      if (code == ExitCode::kDone && own != ExitCode::kDone) {
        code = own;
        stop = std::chrono::steady_clock::now() + kPatience;
      }
    }
    if (!stopped && std::chrono::steady_clock::now() > stop) {
      stopped = true;
      stop_all(children, ended);
    }
    if (left == before) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return code;
}

}  // namespace

ExitCode start_local_ranks(const std::vector<std::string>& arguments, std::int64_t ranks) {
  const std::string program = lockstep_to_start().string();
  std::vector<pid_t> children;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> words = {program, "run"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const std::string number = std::to_string(rank);
    words.insert(words.end(), {"--rank", number, "--local-rank", number});
    const pid_t child = start(program, std::move(words));
    if (child < 0) {
      const int problem = errno;
      for (const pid_t other : children) {
        (void)::kill(other, SIGTERM);
        (void)::waitpid(other, nullptr, 0);
      }
      throw Error(fmt::format("cannot start rank {}: {}", rank, std::strerror(problem)),
                  ExitCode::kMissingPart)
          .field("--local-ranks");
    }
    children.push_back(child);
  }
  return wait_for(children);
}

}  // namespace lockstep
