#include "base/mapped_files.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace lockstep {
namespace {

struct Mapping {
  std::atomic<bool> taken{false};
  std::atomic<const char*> path{nullptr};  // set last: the entry holds
  std::atomic<std::uintptr_t> begin{0}, end{0};
};

std::array<Mapping, 256> mappings;

}  // namespace

int note_mapping(const void* begin, std::size_t size, const char* path) {
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    Mapping& entry = mappings[i];
    if (!entry.taken.exchange(true)) {
      entry.begin = reinterpret_cast<std::uintptr_t>(begin);
      entry.end = entry.begin + size;
      entry.path = path;
      return static_cast<int>(i);
    }
  }
  return -1;
}

void forget_mapping(int entry) {
  if (entry >= 0) {
    Mapping& mapping = mappings[static_cast<std::size_t>(entry)];
    mapping.path = nullptr;
    mapping.taken = false;
  }
}

const char* mapped_file_at(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const Mapping& mapping : mappings) {
    const char* path = mapping.path;
    // mmap gives whole pages, and a page behind the end is what is missing.
    constexpr std::uintptr_t kPage = 1 << 16;
    if (path != nullptr && at >= mapping.begin && at < mapping.end + kPage) {
      return path;
    }
  }
  return nullptr;
}

}  // namespace lockstep
