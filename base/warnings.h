#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What a tolerant reader passed over, in the order found: each text once, with how often it came.
///
/// Only the first kMaxTexts distinct texts are kept, so that a file full of oddities cannot fill
/// the memory; all are counted.
class Warnings {
 public:
  static constexpr std::size_t kMaxTexts = 100;
  struct Entry {
    std::string text;
    std::int64_t count = 1;
  };

  void add(std::string_view text, std::int64_t count = 1);

  const std::vector<Entry>& entries() const { return entries_; }
  std::int64_t total() const { return total_; }  ///< the ones not kept included

 private:
  std::vector<Entry> entries_;
  std::int64_t total_ = 0;
};

}  // namespace lockstep
