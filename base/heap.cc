#include "base/heap.h"

#include <cstdint>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace lockstep {

#ifdef __GLIBC__
void grow_heap(std::size_t bytes) {
  constexpr std::size_t kPage = std::size_t{2} << 20, kMapped = std::size_t{4} << 20;
  ::mallopt(M_ARENA_MAX, 1);  // other threads take from it, too
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(kMapped));
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(2 * bytes));
  ::mallopt(M_TOP_PAD, static_cast<int>(bytes));
  // More than is left at the heap's end, so that it grows now.
  void* volatile inside = std::malloc(kMapped / 2);
  const auto grown = reinterpret_cast<std::uintptr_t>(inside);
  std::free(inside);
  ::mallopt(M_TOP_PAD, static_cast<int>(kPage));
  const auto begin = (grown + kPage - 1) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0)) / kPage * kPage;
  if (grown != 0 && begin < end && end - begin <= bytes + kMapped) {
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
}
#else
void grow_heap(std::size_t) {}
#endif

}  // namespace lockstep
