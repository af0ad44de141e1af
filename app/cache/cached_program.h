#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace lockstep {

/// Where results are kept, if they are: the environment's LOCKSTEP_CACHE, a folder; at most
/// LOCKSTEP_CACHE_SIZE ("1GiB" unless set). ERRORS: a size that is none.
struct CacheSettings {
  std::string folder;
  std::int64_t most_bytes = std::int64_t{1} << 30;
};
std::optional<CacheSettings> cache_settings();

/// run_program(), but a command line that was run before with the same inputs is answered from the
/// cache, if there is one: same exit code, same text, same files. A result is kept if it depends on
/// nothing but files and flags: pure commands that ended well, read regular files alone (no
/// standard input, pipes, devices), and whose inputs did not change meanwhile. A cache that cannot
/// be used is told as a warning. Files that are there already with the right bytes are
/// left alone. Not for several threads at once.
ExitCode run_program_cached(const std::vector<std::string>& arguments,
                            bool* out_of_memory = nullptr);

}  // namespace lockstep
