#pragma once

#include <span>
#include <string_view>

namespace lockstep {

/// A file that was compiled in (cmake/EmbedFiles.cmake).
struct BuiltInFile {
  std::string_view name;  ///< without folders
  std::string_view text;
};

/// The architectures and the zoo, sorted by name.
std::span<const BuiltInFile> built_in_files();

}  // namespace lockstep
