#pragma once

#include <cstddef>

namespace lockstep {

/// The files that are mapped at present, for a signal handler: which one an address belongs to.
/// Lock-free; where more than 256 are mapped, the rest have no name.

/// Returns the entry, -1 if there is no room. `path` must live until forget_mapping().
int note_mapping(const void* begin, std::size_t size, const char* path);
void forget_mapping(int entry);
/// Safe in signal handlers. Null if no file is known there.
const char* mapped_file_at(const void* address);

}  // namespace lockstep
