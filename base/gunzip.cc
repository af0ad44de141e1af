#include "base/gunzip.h"

#include <algorithm>
#include <optional>
#include <span>
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

namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // zlib counts in 32 bits

/// Unpacks piece by piece into the room that `next_room(used)` gives, and returns how much there
/// is; nothing where it gives no more room.
template <class NextRoom>
std::optional<std::size_t> inflate_all(std::string_view packed, const std::string& file,
                                       NextRoom next_room) {
  Inflate inflater;
  z_stream& stream = inflater.stream;
  std::size_t used = 0;
  while (!packed.empty()) {
    const std::size_t piece = std::min(packed.size(), kMostAtOnce);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(piece);
    const std::span<char> room = next_room(used);
    if (room.empty()) {
      return std::nullopt;
    }
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    const int outcome = inflate(&stream, Z_NO_FLUSH);
    packed.remove_prefix(piece - stream.avail_in);
    used += room.size() - stream.avail_out;
    if (outcome == Z_STREAM_END) {
      if (!is_gzip(packed)) {  // zeros or dirt behind the last member are passed over, as gzip does
        return used;
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

/// How much a file unpacks to. ERRORS: more than `limit`.
std::size_t unpacked_size(std::string_view packed, const std::string& file, Bytes limit) {
  std::vector<char> scratch(std::size_t{1} << 16);
  const auto most = static_cast<std::size_t>(limit.count());
  const auto size = inflate_all(packed, file, [&](std::size_t used) {
    return std::span(scratch).first(used > most ? 0 : scratch.size());
  });
  if (!size || *size > most) {
    throw input_too_large(file, "the file unpacks to", limit);
  }
  return *size;
}

/// The size modulo 2^32 that stands at the end, if the file may be that large: deflate never packs
/// to less than a 1032th, texts hardly to less than a 64th.
std::optional<std::size_t> told_size(std::string_view packed) {
  constexpr std::size_t kLeast = 18, kBelieved = 64;
  if (packed.size() < kLeast) {
    return std::nullopt;
  }
  std::size_t told = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    told |= std::size_t{static_cast<unsigned char>(packed[packed.size() - 4 + i])} << (8 * i);
  }
  return told <= kBelieved * packed.size() ? std::optional(told) : std::nullopt;
}

/// The text, if it is as long as `size`.
std::optional<std::string> inflate_to(std::string_view packed, const std::string& file,
                                      std::size_t size) {
  std::string text;
  text.resize(size + 1);  // the end is seen where there is room
  const auto all = inflate_all(packed, file, [&](std::size_t used) {
    return std::span(text.data() + used,
                     std::min(size + 1 - std::min(used, size + 1), kMostAtOnce));
  });
  if (!all || *all != size) {
    return std::nullopt;
  }
  text.resize(size);
  return text;
}

}  // namespace

std::string gunzip(std::string_view packed, const std::string& file, Bytes limit) {
  const auto told = told_size(packed);
  if (told && *told <= static_cast<std::size_t>(limit.count())) {
    if (auto text = inflate_to(packed, file, *told)) {
      return std::move(*text);
    }
  }
  auto text = inflate_to(packed, file, unpacked_size(packed, file, limit));
  LOCKSTEP_CHECK(text.has_value(), "a file unpacks to the same each time");
  return std::move(*text);
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
