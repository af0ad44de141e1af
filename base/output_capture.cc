#include "base/output_capture.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

thread_local OutputCapture* innermost = nullptr;

}  // namespace

OutputCapture::Stream::Stream() : file(::open_memstream(&bytes, &size)) {
  if (file == nullptr) {
    throw Error(fmt::format("cannot keep a stream in memory: {}", std::strerror(errno)));
  }
}

OutputCapture::Stream::~Stream() {
  std::fclose(file);
  std::free(bytes);
}

std::string OutputCapture::Stream::text() const {
  std::fflush(file);
  return {bytes, size};
}

OutputCapture::OutputCapture() : outer_(innermost) { innermost = this; }

OutputCapture::~OutputCapture() { innermost = outer_; }

std::FILE* standard_output() { return innermost == nullptr ? stdout : innermost->out_.file; }

std::FILE* standard_error() { return innermost == nullptr ? stderr : innermost->err_.file; }

}  // namespace lockstep
