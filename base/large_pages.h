#pragma once

#include <cstddef>
#include <vector>

namespace lockstep {

/// Asks the kernel to back the memory by pages of 2 MiB when it is first touched (Linux; elsewhere
/// nothing happens). Parts of pages at the ends are left alone.
void advise_large_pages(const void* begin, std::size_t bytes);

/// Makes room for `count` elements, in large pages: hundreds of megabytes that are filled once cost
/// a page fault, and its clearing, every 4 KiB otherwise.
template <class T>
void reserve_large(std::vector<T>& to, std::size_t count) {
  if (to.capacity() < count) {
    to.reserve(count);
    advise_large_pages(to.data() + to.size(), (count - to.size()) * sizeof(T));
  }
}
template <class T>
void resize_large(std::vector<T>& to, std::size_t count) {
  reserve_large(to, count);
  to.resize(count);
}

}  // namespace lockstep
