#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A file or folder that a result depends on, as it was then.
struct CacheInput {
  std::string path;
  std::string digest;  ///< of a file's bytes, of a folder's listing; "-" if there was none
  /// Size, times of change and number of a file: if they are the same, it is not read again.
  std::int64_t size = 0, modified_ns = 0, changed_ns = 0, inode = 0;
  bool settled = false;  ///< it had not changed for a second: its times can be trusted

  friend bool operator==(const CacheInput&, const CacheInput&) = default;
};

/// A file that a command wrote.
struct CacheFile {
  std::string path, bytes;
};

/// What a command printed and wrote.
struct StoredResult {
  int exit_code = 0;
  std::string out, err;
  std::vector<CacheFile> files;
};

std::string to_bytes(const StoredResult& result);
std::string to_bytes(const std::vector<CacheInput>& inputs);
/// ERRORS: nlohmann's exceptions where the bytes are none of ours.
StoredResult result_of_bytes(std::string_view bytes);
std::vector<CacheInput> inputs_of_bytes(std::string_view bytes);

/// The input as it is now. ERRORS: none; a file that cannot be read has the digest "-".
CacheInput look_at(const std::string& path);
/// Whether the input is still what it was: by its times where they can be trusted, else by its
/// bytes.
bool unchanged(const CacheInput& input);

}  // namespace lockstep
