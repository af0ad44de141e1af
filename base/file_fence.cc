#include "base/file_fence.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Fence {
  std::vector<fs::path> readable, writable;
};

std::optional<Fence>& fence() {
  static std::optional<Fence> of_process;
  return of_process;
}

std::vector<fs::path> without_links(const std::vector<std::string>& folders) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders) {
    std::error_code problem;
    if (fs::path path = fs::weakly_canonical(folder, problem); !problem && !path.empty()) {
      found.push_back(std::move(path));
    }
  }
  return found;
}

bool lies_below(const std::string& path, const std::vector<fs::path>& folders) {
  std::error_code problem;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, problem), problem);
  return !problem && std::ranges::any_of(folders, [&](const fs::path& folder) {
    return std::mismatch(folder.begin(), folder.end(), whole.begin(), whole.end()).first ==
           folder.end();
  });
}

Error outside(const std::string& path) {
  return Error("this file is not served").at(path).expected("a file of the command's own folder");
}

}  // namespace

void fence_files(const std::vector<std::string>& readable,
                 const std::vector<std::string>& writable) {
  fence() = Fence{without_links(readable), without_links(writable)};
  fence()->readable.insert(fence()->readable.end(), fence()->writable.begin(),
                           fence()->writable.end());
}

void refuse_reading_outside(const std::string& path) {
  if (fence() && path != "-" && !lies_below(path, fence()->readable)) {
    throw outside(path);
  }
}

void refuse_writing_outside(const std::string& path) {
  if (fence() && path != "-" && !lies_below(path, fence()->writable)) {
    throw outside(path);
  }
}

}  // namespace lockstep
