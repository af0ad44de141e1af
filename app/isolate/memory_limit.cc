#include "app/isolate/memory_limit.h"

#include <sys/resource.h>

namespace lockstep {

void limit_own_memory([[maybe_unused]] Bytes most) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (most.count() > 0) {
    const auto bytes = static_cast<rlim_t>(most.count());
    const rlimit memory{bytes, bytes};
    ::setrlimit(RLIMIT_DATA, &memory);
  }
#endif
}

}  // namespace lockstep
