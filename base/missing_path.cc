#include "base/missing_path.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_fence.h"
#include "base/text.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The name in the folder that is nearest to this one; empty: none is near.
std::string nearest_name(const fs::path& folder, const std::string& name) {
  constexpr std::size_t kMostNames = 10'000;
  std::error_code problem;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, problem), end;
       !problem && at != end && names.size() < kMostNames; at.increment(problem)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(closest(name, views));
}

}  // namespace

std::string hint_of_missing(const std::string& path) {
  const std::string usual = "check the path; relative paths start at the working directory";
  fs::path there;  // what of it exists; empty: the working directory
  for (const fs::path& part : fs::path(path)) {
    if (is_there(there / part)) {
      there /= part;
      continue;
    }
    const fs::path folder = there.empty() ? fs::path(".") : there;
    try {
      refuse_reading_outside(folder.string());
    } catch (const Error&) {
      return usual;
    }
    const std::string near = nearest_name(folder, part.string());
    if (!near.empty()) {
      return fmt::format("did you mean {}?", printable((there / near).string(), 400));
    }
    const bool last = (there / part).lexically_normal() == fs::path(path).lexically_normal();
    return last
               ? usual
               : fmt::format("there is no folder {}; relative paths start at the working directory",
                             printable((there / part).string(), 400));
  }
  return usual;
}

}  // namespace lockstep
