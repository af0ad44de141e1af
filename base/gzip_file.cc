#include "base/gzip_file.h"

#include <array>
#include <utility>
#define ZLIB_CONST
#include <zlib.h>

#include "base/error.h"

namespace lockstep {

struct GzipFile::Deflate {
  z_stream stream{};
  std::array<unsigned char, 1 << 16> out{};
};

GzipFile::GzipFile(std::string path) : file_(std::move(path)) {
  if (!file_.path().ends_with(".gz")) {
    return;
  }
  deflate_ = std::make_unique<Deflate>();
  constexpr int kGzipHeader = 16;
  const int status = deflateInit2(&deflate_->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                  MAX_WBITS + kGzipHeader, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);
  LOCKSTEP_CHECK(status == Z_OK, "zlib starts");
}

GzipFile::~GzipFile() {
  if (deflate_ != nullptr) {
    deflateEnd(&deflate_->stream);
  }
}

namespace {

void pump(z_stream& stream, std::array<unsigned char, 1 << 16>& out, AtomicFile& file, int flush) {
  do {
    stream.next_out = out.data();
    stream.avail_out = static_cast<unsigned>(out.size());
    const int status = deflate(&stream, flush);
    LOCKSTEP_CHECK(status != Z_STREAM_ERROR, "zlib keeps its state");
    file.write({reinterpret_cast<const char*>(out.data()), out.size() - stream.avail_out});
  } while (stream.avail_out == 0);
}

}  // namespace

void GzipFile::write(std::string_view text) {
  if (deflate_ == nullptr) {
    file_.write(text);
    return;
  }
  constexpr std::size_t kMost = 1U << 30;  // zlib counts in 32 bits
  while (!text.empty()) {
    const std::string_view part = text.substr(0, kMost);
    text.remove_prefix(part.size());
    deflate_->stream.next_in = reinterpret_cast<const Bytef*>(part.data());
    deflate_->stream.avail_in = static_cast<unsigned>(part.size());
    pump(deflate_->stream, deflate_->out, file_, Z_NO_FLUSH);
  }
}

void GzipFile::commit() {
  if (deflate_ != nullptr) {
    pump(deflate_->stream, deflate_->out, file_, Z_FINISH);
  }
  file_.commit();
}

}  // namespace lockstep
