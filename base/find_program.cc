#include "base/find_program.h"

#include <cstdlib>
#include <string_view>
#include <system_error>

#include "base/text.h"

namespace lockstep {

namespace fs = std::filesystem;

fs::path find_program(const std::string& name) {
  std::error_code ignored;
  fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path() / name;
  if (fs::exists(beside, ignored)) {
    return beside;
  }
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    fs::path candidate = fs::path(folder) / name;
    if (!folder.empty() && fs::exists(candidate, ignored)) {
      return candidate;
    }
  }
  return {};
}

}  // namespace lockstep
