#pragma once

#include <string>

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

 private:
  std::string path_;
};

}  // namespace lockstep
