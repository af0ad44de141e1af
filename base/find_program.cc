#include "base/find_program.h"

#include <cstdlib>
#include <string_view>

#include "base/file_record.h"
#include "base/own_program.h"
#include "base/text.h"

namespace lockstep {

namespace fs = std::filesystem;

fs::path find_program(const std::string& name) {
  fs::path beside = own_program().parent_path() / name;
  if (path_exists(beside.string())) {
    return beside;
  }
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    fs::path candidate = fs::path(folder) / name;
    if (!folder.empty() && path_exists(candidate.string())) {
      return candidate;
    }
  }
  return {};
}

}  // namespace lockstep
