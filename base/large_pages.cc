#include "base/large_pages.h"

#include <cstdint>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace lockstep {

#ifdef __linux__
void advise_large_pages(const void* begin, std::size_t bytes) {
  constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = (address + bytes) / kPage * kPage;
  if (first < last) {
    ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  }
}
#else
void advise_large_pages(const void*, std::size_t) {}
#endif

}  // namespace lockstep
