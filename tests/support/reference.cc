#include "tests/support/reference.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <zlib.h>

#include "base/error.h"

namespace lockstep::testing {

std::string reference_dir() {
  const char* set = std::getenv("LOCKSTEP_REFERENCE");
  const std::string dir = set != nullptr ? set : LOCKSTEP_SOURCE_DIR "/../shared/reference";
  return std::filesystem::is_directory(dir) ? dir : "";
}

std::string slurp(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (file == nullptr) {
    throw Error("cannot read the file").at(path);
  }
  std::string text;
  std::array<char, 1 << 16> chunk{};
  for (int got = 0; (got = gzread(file, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  gzclose(file);
  return text;
}

}  // namespace lockstep::testing
