#include "generator/exact/folded_pass.h"

#include <algorithm>

namespace lockstep {
namespace {

void add_unique(std::vector<std::int32_t>& list, std::int32_t value) {
  if (std::ranges::find(list, value) == list.end()) {
    list.push_back(value);
  }
}

}  // namespace

FoldedPass fold(const Pass& pass, const OperatorTime& time, Time launch) {
  FoldedPass folded;
  std::vector<std::int32_t> place;  // of a step among the folded ones
  const auto places = [&](const std::vector<std::int32_t>& steps) {
    std::vector<std::int32_t> result;
    for (const std::int32_t step : steps) {
      add_unique(result, place[static_cast<std::size_t>(step)]);
    }
    return result;
  };
  std::string first_name;
  for (const PassStep& step : pass.steps) {
    const bool computes = step.transfer.comm == CommType::kNone;
    std::vector<std::int32_t> after = places(step.after);
    const auto last = static_cast<std::int32_t>(folded.steps.size()) - 1;
    if (computes && last >= 0 && folded.steps.back().transfer.comm == CommType::kNone &&
        std::ranges::all_of(after, [&](std::int32_t earlier) { return earlier == last; })) {
      FoldedStep& previous = folded.steps.back();
      const Time taken = time(step.op);
      previous.compute += taken;
      previous.host += taken > Time() ? launch : Time();
      previous.ready += step.ready;
      previous.name = first_name + " to " + step.name;
      place.push_back(last);
      continue;
    }
    first_name = step.name;
    const Time taken = computes ? time(step.op) : Time();
    folded.steps.push_back({step.name, taken, taken > Time() ? launch : Time(), step.transfer,
                            std::move(after), step.ready});
    place.push_back(last + 1);
  }
  folded.exits = places(pass.exits);
  return folded;
}

}  // namespace lockstep
