#include "app/isolate/memory_limit.h"

#include <sys/resource.h>

// GCC defines macros under its sanitizers, Clang has features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKSTEP_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOCKSTEP_SANITIZED
#endif
#endif

namespace lockstep {

void limit_own_memory([[maybe_unused]] Bytes most) {
#ifndef LOCKSTEP_SANITIZED
  if (most.count() > 0) {
    const auto bytes = static_cast<rlim_t>(most.count());
    const rlimit memory{bytes, bytes};
    ::setrlimit(RLIMIT_DATA, &memory);
  }
#endif
}

}  // namespace lockstep
