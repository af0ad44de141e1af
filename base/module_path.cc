#include "base/module_path.h"

#include <filesystem>

#include "base/file_record.h"
#include "base/own_program.h"

namespace lockstep {

std::vector<std::string> module_places(std::string_view name, std::string_view built) {
  namespace fs = std::filesystem;
  const fs::path folder = own_program().parent_path();
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
