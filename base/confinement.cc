#include "base/confinement.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Folders {
  std::string own, readable;
};

std::optional<Folders> confined;  // set once, before there are threads

/// By its words: ".." after a link would lead elsewhere, and is not followed.
bool lies_below(const fs::path& path, const std::string& folder) {
  return !folder.empty() && path.lexically_normal().string().starts_with(folder + "/") &&
         std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
}

[[noreturn]] void refuse(const std::string& path) {
  throw Error("this path is not served").at(path).expected("a file of the request's own folder");
}

}  // namespace

void confine_files(std::string own, std::string readable) {
  LOCKSTEP_CHECK(!confined, "confined twice");
  confined = Folders{std::move(own), std::move(readable)};
}

void check_readable(const std::string& path) {
  if (confined && path != "-") {
    const fs::path whole = fs::path(confined->own) / path;
    if (!lies_below(whole, confined->own) && !lies_below(whole, confined->readable)) {
      refuse(path);
    }
  }
}

void check_writable(const std::string& path) {
  if (confined && path != "-" && !lies_below(fs::path(confined->own) / path, confined->own)) {
    refuse(path);
  }
}

}  // namespace lockstep
