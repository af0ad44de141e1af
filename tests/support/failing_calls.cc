// A library for LD_PRELOAD that makes the machine fail on purpose.
//
//   FAIL_AT=N         the N-th call that changes files or writes to standard output fails, and with
//                     FAIL_ON=1 so do all after it (a disk that stays full)
//   FAIL_WITH=ENOSPC  or EIO: how
//   FAIL_COUNT=FILE   appends the number of such calls to FILE at the end
//   FAIL_CLOCK=1      each look at the time of day jumps to and fro by a year and more
//   FAIL_THREADS=1    no thread can be started
//
// Counted are fopen for writing, fwrite, fflush, fclose, write, pwrite, fsync, fdatasync,
// ftruncate, rename and mkdir; not what goes to standard error or into memory. Threads count
// together.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

std::atomic<long> calls{0}, looks{0};

long setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atol(text);
}

/// Whether this call fails; errno is set then.
bool fails() {
  const long call = ++calls;
  const long at = setting("FAIL_AT");
  if (at > 0 && (call == at || (call > at && setting("FAIL_ON") != 0))) {
    const char* with = std::getenv("FAIL_WITH");
    errno = with != nullptr && std::strcmp(with, "EIO") == 0 ? EIO : ENOSPC;
    return true;
  }
  return false;
}

/// The function that this one stands in for.
template <class F>
F* next_of(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

/// Standard error tells of the fault, memory streams have no number, and sockets no disk.
bool spared(int fd) {
  struct stat info {};
  return fd == STDERR_FILENO || fd < 0 || (::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode));
}

bool spared(FILE* stream) { return spared(::fileno(stream)); }

struct Tell {
  ~Tell() {
    const char* file = std::getenv("FAIL_COUNT");
    const int fd = file == nullptr ? -1 : ::open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd >= 0) {
      char text[32];
      const int size = std::snprintf(text, sizeof text, "%ld\n", calls.load());
      (void)!next_of<decltype(::write)>("write")(fd, text, static_cast<std::size_t>(size));
      ::close(fd);
    }
  }
} at_end;

}  // namespace

#define NEXT(name) static auto* const next = next_of<decltype(::name)>(#name)

extern "C" {

FILE* fopen(const char* path, const char* mode) {
  NEXT(fopen);
  return strpbrk(mode, "wa+") != nullptr && fails() ? nullptr : next(path, mode);
}

size_t fwrite(const void* data, size_t size, size_t count, FILE* stream) {
  NEXT(fwrite);
  return !spared(stream) && size * count > 0 && fails() ? 0 : next(data, size, count, stream);
}

int fflush(FILE* stream) {
  NEXT(fflush);
  return stream != nullptr && !spared(stream) && fails() ? EOF : next(stream);
}

int fclose(FILE* stream) {
  NEXT(fclose);
  const int failed =
      (fcntl(fileno(stream), F_GETFL) & O_ACCMODE) != O_RDONLY && !spared(stream) && fails();
  const int problem = errno;
  const int closed = next(stream);
  if (failed) {
    errno = problem;
    return EOF;
  }
  return closed;
}

ssize_t write(int fd, const void* data, size_t size) {
  NEXT(write);
  return !spared(fd) && fails() ? -1 : next(fd, data, size);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  NEXT(pwrite);
  return fails() ? -1 : next(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  NEXT(pwrite64);
  return fails() ? -1 : next(fd, data, size, at);
}

int fsync(int fd) {
  NEXT(fsync);
  return fails() ? -1 : next(fd);
}

int fdatasync(int fd) {
  NEXT(fdatasync);
  return fails() ? -1 : next(fd);
}

int ftruncate(int fd, off_t size) noexcept {
  NEXT(ftruncate);
  return fails() ? -1 : next(fd, size);
}

int ftruncate64(int fd, off64_t size) noexcept {
  NEXT(ftruncate64);
  return fails() ? -1 : next(fd, size);
}

int rename(const char* from, const char* to) noexcept {
  NEXT(rename);
  return fails() ? -1 : next(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  NEXT(mkdir);
  return fails() ? -1 : next(path, mode);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* settings, void* (*body)(void*),
                   void* argument) noexcept {
  NEXT(pthread_create);
  return setting("FAIL_THREADS") != 0 ? EAGAIN : next(thread, settings, body, argument);
}

int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  NEXT(clock_gettime);
  const int result = next(clock, now);
  if ((clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && setting("FAIL_CLOCK") != 0) {
    const long look = looks++;
    now->tv_sec += (look % 2 == 0 ? 1 : -1) * 31556952L * (1 + look % 7);
  }
  return result;
}

}  // extern "C"
