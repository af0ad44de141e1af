#include "generator/message_sizes.h"

#include "base/error.h"

namespace lockstep {

std::vector<Count> message_sizes(Count begin, Count end) {
  if (begin < 1) {
    throw Error("sizes that double cannot begin at 0").field("--begin_size").expected(">= 1");
  }
  std::vector<Count> sizes;
  for (Count size = begin; size <= end; size = size * 2) {
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace lockstep
