#include "tests/support/run.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

extern char** environ;

namespace lockstep::testing {
namespace {

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void open(int descriptor, const std::string& path, int flags) {
    posix_spawn_file_actions_addopen(&actions_, descriptor, path.c_str(), flags, 0600);
  }
  void enter(const std::string& folder) {
    posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) {
    list.push_back(text.data());
  }
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> environment_with(const std::vector<std::string>& ours) {
  std::vector<std::string> all = ours;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view inherited = *entry;
    const std::string_view name = inherited.substr(0, inherited.find('=') + 1);
    bool replaced = false;
    for (const std::string& own : ours) {
      replaced = replaced || own.starts_with(name);
    }
    if (!replaced) {
      all.emplace_back(inherited);
    }
  }
  return all;
}

int wait_for(pid_t child, int seconds, const std::string& name) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd ended{handle, POLLIN, 0};
  const bool in_time = handle < 0 || ::poll(&ended, 1, seconds * 1000) == 1;
  if (!in_time) {
    ::kill(child, SIGKILL);
  }
  ::close(handle);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    throw Error(fmt::format("{} did not end within {} s", name, seconds));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string read_all(const std::string& path) { return std::string(FileText(path).view()); }

}  // namespace

RunResult run_program(const std::vector<std::string>& command, const RunOptions& options) {
  const ScratchFolder streams;
  write_file(streams / "in", options.input);
  FileActions actions;
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  actions.open(STDIN_FILENO, streams / "in", O_RDONLY);
  actions.open(STDOUT_FILENO, options.out_to.value_or(streams / "out"), kWrite);
  actions.open(STDERR_FILENO, streams / "err", kWrite);
  actions.enter(options.folder);

  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = environment_with(options.environment);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, command.front().c_str(), actions.get(), nullptr,
                                   pointers(arguments).data(), pointers(environment).data());
  if (problem != 0) {
    throw Error(fmt::format("cannot start {}: {}", command.front(), std::strerror(problem)));
  }
  RunResult result;
  result.exit_code = wait_for(child, options.seconds, command.front());
  result.out = options.out_to ? "" : read_all(streams / "out");
  result.err = read_all(streams / "err");
  return result;
}

RunResult run(std::vector<std::string> arguments, const RunOptions& options) {
  arguments.insert(arguments.begin(), LOCKSTEP_BINARY);
  return run_program(arguments, options);
}

ScratchFolder::ScratchFolder() {
  std::string name = std::filesystem::temp_directory_path().string() + "/lockstep-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(fmt::format("cannot make a scratch folder: {}", std::strerror(errno)));
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string differs_from_golden(const std::string& name, std::string_view text) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/tests/golden/" + name;
  const char* update = std::getenv("LOCKSTEP_UPDATE_GOLDEN");
  if (update != nullptr && std::string_view(update) == "1") {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_file(path, text);
    return "";
  }
  constexpr std::string_view kAccept = "LOCKSTEP_UPDATE_GOLDEN=1 writes the golden file";
  if (!std::filesystem::exists(path)) {
    return fmt::format("{} is missing; {}", path, kAccept);
  }
  const std::string golden = read_all(path);
  if (golden == text) {
    return "";
  }
  const std::vector<std::string_view> want = split(golden, '\n');
  const std::vector<std::string_view> have = split(text, '\n');
  std::size_t line = 0;
  while (line < want.size() && line < have.size() && want[line] == have[line]) {
    ++line;
  }
  const auto shown = [line](const std::vector<std::string_view>& lines) {
    return line < lines.size() ? "'" + std::string(lines[line]) + "'" : std::string("(end)");
  };
  return fmt::format("{}:{}: the text differs\n  golden: {}\n  now:    {}\n  {}", path, line + 1,
                     shown(want), shown(have), kAccept);
}

}  // namespace lockstep::testing
