#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A file, folder or name that a result depends on, as it was then.
struct CacheInput {
  std::string path;
  /// Of a file's bytes, of a folder's listing; kAbsent where there is nothing of that name, empty
  /// where what there is cannot be known: pipes, devices, files that cannot be read, folders of
  /// more than 10^5 entries. Or what look_for_folder() and look_at_place() say.
  std::string digest;
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

/// A result in two parts: what was printed, with the fingerprints of the files; and the files'
/// bytes, which are large and are only needed where a file is not there any more as it was written.
struct StoredParts {
  std::string head, files;
};
StoredParts to_parts(const StoredResult& result);
std::string to_bytes(const std::vector<CacheInput>& inputs);
/// The result without its files' bytes; `missing` tells which files have to be written again.
/// ERRORS, here and below: nlohmann's exceptions where the bytes are none of ours.
StoredResult result_of_head(std::string_view head, std::vector<bool>& missing);
/// Puts the bytes into the files of the result.
void add_files(std::string_view files, StoredResult& result);
std::vector<CacheInput> inputs_of_bytes(std::string_view bytes);

inline constexpr std::string_view kAbsent = "-";

/// The input as it is now. ERRORS: none.
CacheInput look_at(const std::string& path);
/// Only whether there is a folder of that name.
CacheInput look_for_folder(const std::string& path);
/// The working directory.
CacheInput look_at_place();
/// Whether the input is still what it was: by its times where they can be trusted, else by its
/// bytes.
bool unchanged(const CacheInput& input);

}  // namespace lockstep
