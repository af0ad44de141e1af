#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/input_limit.h"

namespace lockstep {

/// Whether these bytes begin as a gzip file does.
bool is_gzip(std::string_view bytes);

/// The text of a gzip file (RFC 1952, several members too). Takes the text's memory once, and none
/// for a text that is too large; unpacks twice where the size that the file's end tells is wrong or
/// not believed.
/// ERRORS: Error naming the file where it is damaged, cut off, or unpacks to more than `limit`.
std::string gunzip(std::string_view packed, const std::string& file, Bytes limit = input_limit());

/// A file's whole text, unpacked where it is a gzip file. The view lives as long as the object.
/// ERRORS: those of FileText and gunzip().
class UnpackedText {
 public:
  explicit UnpackedText(const std::string& path)
      : file_(path), unpacked_(is_gzip(file_.view()) ? gunzip(file_.view(), path) : "") {}

  std::string_view view() const { return is_gzip(file_.view()) ? unpacked_ : file_.view(); }

 private:
  FileText file_;
  std::string unpacked_;
};

struct TarMember {
  std::string name;
  std::string_view text;  ///< within the archive
};

/// Whether these bytes begin as a tar archive (POSIX ustar or GNU) does.
bool is_tar(std::string_view bytes);

/// The regular files of a tar archive, in order. ERRORS: Error naming the file where it is cut off
/// or no archive.
std::vector<TarMember> tar_members(std::string_view archive, const std::string& file);

}  // namespace lockstep
