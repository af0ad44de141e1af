#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

/// Collects text and hands it on in pieces of about 1 MiB, so that a workload of millions of lines
/// is never in memory as a whole.
class BlockWriter {
 public:
  using Take = std::function<void(std::string_view)>;

  explicit BlockWriter(Take take) : take_(std::move(take)) {}
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  void text(std::string_view text) {
    if (buffer_.size() + text.size() > kPiece) {
      flush();
    }
    buffer_ += text;
  }
  void repeat(std::string_view block, std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) {
      text(block);
    }
  }
  /// Hands on what is left; to be called once at the end.
  void flush() {
    if (!buffer_.empty()) {
      take_(buffer_);
      buffer_.clear();
    }
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  Take take_;
  std::string buffer_;
};

}  // namespace lockstep
