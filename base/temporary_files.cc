#include "base/temporary_files.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <unistd.h>

namespace lockstep {
namespace {

struct Entry {
  std::atomic<bool> taken{false};
  std::atomic<pid_t> owner{0};
  std::atomic<const char*> name{nullptr};  // set last: the entry holds
};

std::array<Entry, 256> entries;

/// The signal's own action comes once this has returned.
extern "C" void on_end(int signal) {
  remove_temporary_files();
  ::raise(signal);
}

}  // namespace

int note_temporary_file(const char* name) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    if (!entry.taken.exchange(true)) {
      entry.owner = ::getpid();
      entry.name = name;
      return static_cast<int>(i);
    }
  }
  return -1;
}

void forget_temporary_file(int entry) {
  if (entry >= 0) {
    entries[static_cast<std::size_t>(entry)].name = nullptr;
    entries[static_cast<std::size_t>(entry)].taken = false;
  }
}

void remove_temporary_files() {
  const pid_t self = ::getpid();  // a child has its parent's entries
  for (const Entry& entry : entries) {
    const char* const name = entry.name;
    if (name != nullptr && entry.owner == self) {
      ::unlink(name);
    }
  }
}

void leave_no_temporary_files() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) {
      continue;
    }
    struct sigaction action {};
    action.sa_handler = on_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace lockstep
