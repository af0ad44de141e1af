#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep {

/// One line on standard error that says how far a long piece of work is and when it will end:
///
///     simulating  42 % [########            ]  0:12 left
///
/// Drawn at most ten times a second, only on a terminal and only after half a second of work;
/// erased at the end. Updating costs one comparison in most calls.
class Progress {
 public:
  /// `total` in any unit of work; 0 draws nothing.
  Progress(std::string label, std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::int64_t done) {
    if (active_ && done >= next_) {
      draw(done);
    }
  }

  /// The line for `done` of `total` after `elapsed` seconds, without control characters.
  static std::string line(const std::string& label, std::int64_t done, std::int64_t total,
                          double elapsed);

 private:
  void draw(std::int64_t done);

  std::string label_;
  std::int64_t total_;
  std::int64_t next_ = 0;
  bool active_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace lockstep
