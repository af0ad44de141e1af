#pragma once

#include <cstddef>

namespace lockstep {

/// Lets the heap of this process grow by so many bytes at once, in pages of 2 MiB where the kernel
/// grants them on demand, and keep what is freed; threads share it. A short run of many buffers of
/// some hundred KiB otherwise spends a sixth of its time on having single pages of 4 KiB cleared.
/// What is not touched takes no memory; blocks of 4 MiB and more are mapped, and given back, one by
/// one. Does nothing where the C library is not glibc.
void grow_heap(std::size_t bytes);

}  // namespace lockstep
