#include "base/gunzip.h"

#include <algorithm>
#include <limits>
#include <zlib.h>

#include "base/error.h"

namespace lockstep {
namespace {

/// A zlib stream that is closed on every way out.
struct Inflate {
  z_stream stream{};
  Inflate() { LOCKSTEP_CHECK(inflateInit2(&stream, 15 + 16) == Z_OK, "zlib starts"); }
  ~Inflate() { inflateEnd(&stream); }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;
};

constexpr std::size_t kBlock = 512;

/// An octal number of a tar header; 0 if it is none.
std::size_t octal(std::string_view text) {
  std::size_t value = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '7') {
      value = value * 8 + static_cast<std::size_t>(c - '0');
    } else if (value > 0 || (c != ' ' && c != '0')) {
      break;
    }
  }
  return value;
}

std::string_view until_zero(std::string_view text) { return text.substr(0, text.find('\0')); }

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view packed, const std::string& file, std::size_t limit,
                   std::size_t spare) {
  Inflate inflater;
  z_stream& stream = inflater.stream;
  std::string text;
  // The last four bytes are the size modulo 2^32: a good guess, never trusted beyond 64 times.
  std::size_t guess = 0;
  for (std::size_t i = 0; i < 4 && packed.size() >= 18; ++i) {
    guess |= std::size_t{static_cast<unsigned char>(packed[packed.size() - 4 + i])} << (8 * i);
  }
  text.resize(std::min(limit, std::max(std::min(guess, 64 * packed.size()), 2 * packed.size())) +
              spare + 1);
  std::size_t used = 0;
  while (!packed.empty()) {
    const std::size_t piece = std::min<std::size_t>(packed.size(), std::size_t{1} << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(piece);
    if (used + spare >= text.size()) {
      text.resize(text.size() + text.size() / 2 + 4096);
    }
    const std::size_t room =
        std::min<std::size_t>(text.size() - spare - used, std::size_t{1} << 30);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + used);
    stream.avail_out = static_cast<uInt>(room);
    const int outcome = inflate(&stream, Z_NO_FLUSH);
    packed.remove_prefix(piece - stream.avail_in);
    used += room - stream.avail_out;
    if (used > limit) {
      throw Error("the file unpacks to more than " + std::to_string(limit) + " bytes").at(file);
    }
    if (outcome == Z_STREAM_END) {
      if (!is_gzip(packed)) {  // zeros or dirt behind the last member are passed over, as gzip does
        text.resize(used + spare);
        text.resize(used);
        return text;
      }
      inflateReset(&stream);
    } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
      throw Error("the packed file is damaged").at(file).expected("a gzip file");
    } else if (outcome == Z_BUF_ERROR && stream.avail_out > 0) {
      break;
    }
  }
  throw Error("the packed file ends too early").at(file).expected("a whole gzip file");
}

bool is_tar(std::string_view bytes) {
  return bytes.size() >= kBlock && bytes.substr(257, 5) == "ustar";
}

std::vector<TarMember> tar_members(std::string_view archive, const std::string& file) {
  std::vector<TarMember> members;
  std::string long_name;
  while (archive.size() >= kBlock && archive[0] != '\0') {
    if (!is_tar(archive)) {
      throw Error("a header of the archive is damaged").at(file).expected("a tar archive");
    }
    const std::size_t size = octal(archive.substr(124, 12));
    const char type = archive[156];
    std::string name(until_zero(archive.substr(0, 100)));
    archive.remove_prefix(kBlock);
    if (size > archive.size()) {
      throw Error("the archive ends within '" + name + "'").at(file).expected("a whole archive");
    }
    const std::string_view text = archive.substr(0, size);
    if (type == 'L') {
      long_name = until_zero(text);
    } else if (type == '0' || type == '\0') {
      members.push_back({long_name.empty() ? name : long_name, text});
      long_name.clear();
    }
    archive.remove_prefix(std::min(archive.size(), (size + kBlock - 1) / kBlock * kBlock));
  }
  return members;
}

}  // namespace lockstep
