#include "base/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

ScratchFolder::ScratchFolder()
    : path_((std::filesystem::temp_directory_path() / "lockstep-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) {
    throw Error(fmt::format("cannot make a folder: {}", std::strerror(errno))).at(path_);
  }
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep
