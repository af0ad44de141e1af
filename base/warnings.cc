#include "base/warnings.h"

namespace lockstep {

void Warnings::add(std::string_view text) {
  ++total_;
  for (Entry& entry : entries_) {
    if (entry.text == text) {
      ++entry.count;
      return;
    }
  }
  if (entries_.size() < kMaxTexts) {
    entries_.push_back({std::string(text), 1});
  }
}

}  // namespace lockstep
