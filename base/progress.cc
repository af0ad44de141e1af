#include "base/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

namespace lockstep {

Progress::Progress(std::string label, std::int64_t total)
    : label_(std::move(label)),
      total_(total),
      active_(total > 0 && ::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (drawn_) {
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  }
}

void Progress::draw(std::int64_t done) {
  const auto now = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  next_ = done + std::max<std::int64_t>(1, total_ / 1000);
  if (elapsed < 0.5 || (drawn_ && now - last_ < std::chrono::milliseconds(100))) {
    return;
  }
  last_ = now;
  drawn_ = true;
  std::fputs(("\r" + line(label_, done, total_, elapsed) + "\033[K").c_str(), stderr);
  std::fflush(stderr);
}

std::string Progress::line(const std::string& label, std::int64_t done, std::int64_t total,
                           double elapsed) {
  constexpr int kWidth = 20;
  const double share = std::clamp(
      static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(total, 1)), 0.0, 1.0);
  const int filled = static_cast<int>(share * kWidth);
  std::string text = fmt::format("{}  {:3.0f} % [{:#<{}}{:{}}]", label, share * 100, "", filled, "",
                                 kWidth - filled);
  if (share > 0) {
    const auto left = std::llround(elapsed * (1 - share) / share);
    text += left >= 3600
                ? fmt::format("  {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60)
                : fmt::format("  {}:{:02} left", left / 60, left % 60);
  }
  return text;
}

}  // namespace lockstep
