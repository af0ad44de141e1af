#include "base/module_path.h"

#include <filesystem>

#include "base/file_record.h"

namespace lockstep {

std::vector<std::string> module_places(std::string_view name, std::string_view built) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<std::string> found;
  for (const fs::path& place :
       {folder / name, folder / "../lib/lockstep" / name, fs::path(built)}) {
    if (!place.empty() && path_exists(place.string())) {
      found.push_back(place.string());
    }
  }
  return found;
}

}  // namespace lockstep
