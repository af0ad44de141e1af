#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// A fresh empty folder of ours alone, removed with all it holds at the end.
/// ERRORS: Error where it cannot be made.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace lockstep
