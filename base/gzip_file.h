#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/atomic_file.h"

namespace lockstep {

/// An AtomicFile that is packed on the way when its name ends in ".gz". The packed bytes depend on
/// the text alone (no time stamp, no name).
class GzipFile {
 public:
  explicit GzipFile(std::string path);
  ~GzipFile();

  void write(std::string_view text);
  void commit();

 private:
  struct Deflate;
  AtomicFile file_;
  std::unique_ptr<Deflate> deflate_;  // null for a plain file
};

}  // namespace lockstep
