#include "generator/exact/split_pass.h"

#include <algorithm>

namespace lockstep {
namespace {

void add_unique(std::vector<std::int32_t>& list, std::int32_t value) {
  if (std::ranges::find(list, value) == list.end()) {
    list.push_back(value);
  }
}

}  // namespace

SplitPass split_weights(const Pass& backward) {
  SplitPass split;
  std::vector<std::int32_t> place;                    // of each step in its part
  std::vector<std::vector<std::int32_t>> stands_for;  // steps of the first part it comes after
  std::vector<char> waited_for;                       // of the second part's steps
  const auto first_part = [&](const std::vector<std::int32_t>& steps) {
    std::vector<std::int32_t> result;
    for (const std::int32_t step : steps) {
      for (const std::int32_t other : stands_for[static_cast<std::size_t>(step)]) {
        add_unique(result, other);
      }
    }
    return result;
  };
  for (const PassStep& step : backward.steps) {
    PassStep part = step;
    if (!step.weights) {
      part.after = first_part(step.after);
      place.push_back(static_cast<std::int32_t>(split.input.steps.size()));
      stands_for.push_back({place.back()});
      split.input.steps.push_back(std::move(part));
      continue;
    }
    part.after.clear();
    for (const std::int32_t earlier : step.after) {
      const auto index = static_cast<std::size_t>(earlier);
      if (backward.steps[index].weights) {
        part.after.push_back(place[index]);
        waited_for[static_cast<std::size_t>(place[index])] = 1;
      }
    }
    place.push_back(static_cast<std::int32_t>(split.weights.steps.size()));
    stands_for.push_back(first_part(step.after));
    waited_for.push_back(0);
    split.weights.steps.push_back(std::move(part));
  }
  split.input.exits = first_part(backward.exits);
  for (std::size_t i = 0; i < waited_for.size(); ++i) {
    if (waited_for[i] == 0) {
      split.weights.exits.push_back(static_cast<std::int32_t>(i));
    }
  }
  return split;
}

}  // namespace lockstep
