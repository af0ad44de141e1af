#include "base/warnings.h"

namespace lockstep {

void Warnings::add(std::string_view text, std::int64_t count) {
  total_ += count;
  for (Entry& entry : entries_) {
    if (entry.text == text) {
      entry.count += count;
      return;
    }
  }
  if (entries_.size() < kMaxTexts) {
    entries_.push_back({std::string(text), count});
  }
}

}  // namespace lockstep
