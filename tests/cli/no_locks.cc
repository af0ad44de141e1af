// A library to be loaded before others: a file system that has no locks, as NFS without its lock
// server has none.
#include <cerrno>
#include <cstdarg>
#include <dlfcn.h>
#include <fcntl.h>

namespace {

using Fcntl = int (*)(int, int, void*);

int without_locks(const char* name, int file, int what, void* argument) {
  if (what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK || what == F_OFD_SETLKW) {
    errno = ENOLCK;
    return -1;
  }
  return reinterpret_cast<Fcntl>(::dlsym(RTLD_NEXT, name))(file, what, argument);
}

void* argument_of(std::va_list list) { return va_arg(list, void*); }

}  // namespace

extern "C" {

// By its name for the linker: beside it in C++ there is a type of that name.
int no_flock(int file, int what) __asm__("flock");
int no_flock(int /*file*/, int /*what*/) {
  errno = ENOLCK;
  return -1;
}

int fcntl(int file, int what, ...) {
  std::va_list list;
  va_start(list, what);
  void* argument = argument_of(list);
  va_end(list);
  return without_locks("fcntl", file, what, argument);
}

int fcntl64(int file, int what, ...) {
  std::va_list list;
  va_start(list, what);
  void* argument = argument_of(list);
  va_end(list);
  return without_locks("fcntl64", file, what, argument);
}
}
