#include "simulator/replay/standing.h"

#include <algorithm>

namespace lockstep {

bool Standing::comparable() const {
  return std::ranges::all_of(blocks,
                             [](const Block& block) { return block.may_stay || block.may_move; });
}

bool Standing::repeats(const Standing& earlier, std::vector<char>& moved) const {
  if (blocks.size() != earlier.blocks.size()) {
    return false;
  }
  moved.assign(blocks.size(), 0);
  const auto same = [&](std::size_t begin, std::size_t end, std::size_t their_begin,
                        std::size_t their_end) {
    const auto mine = values.begin(), theirs = earlier.values.begin();
    using Step = std::ptrdiff_t;
    return std::equal(mine + static_cast<Step>(begin), mine + static_cast<Step>(end),
                      theirs + static_cast<Step>(their_begin),
                      theirs + static_cast<Step>(their_end));
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block &a = blocks[i], &b = earlier.blocks[i];
    if (a.may_stay && b.may_stay && same(a.as_it_is, a.relative, b.as_it_is, b.relative)) {
      continue;
    }
    if (!a.may_move || !b.may_move || !same(a.relative, a.end, b.relative, b.end)) {
      return false;
    }
    moved[i] = 1;
  }
  return true;
}

}  // namespace lockstep
