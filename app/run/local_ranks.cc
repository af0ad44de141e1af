#include "app/run/local_ranks.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

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
  const pid_t child = ::fork();
  if (child == 0) {
    // However this process ends, no rank goes on without it.
    (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() == parent) {
      (void)::execv(program.c_str(), arguments.data());
    }
    ::_exit(static_cast<int>(ExitCode::kMissingPart));
  }
  return child;
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
  auto code = ExitCode::kDone;
  for (std::size_t left = children.size(); left > 0;) {
    int status = 0;
    const pid_t child = ::waitpid(-1, &status, 0);
    const auto found = std::ranges::find(children, child);
    if (found == children.end()) {
      if (child < 0 && errno != EINTR) {
        break;
      }
      continue;
    }
    --left;
    auto own = ExitCode::kCheckFailed;
    if (WIFEXITED(status)) {
      own = static_cast<ExitCode>(WEXITSTATUS(status));
    } else {
      fmt::print(stderr, "lockstep: rank {} was ended by signal {} ({})\n",
                 found - children.begin(), WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    }
    code = code == ExitCode::kDone ? own : code;
  }
  return code;
}

}  // namespace lockstep
