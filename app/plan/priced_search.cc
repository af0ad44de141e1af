#include "app/plan/priced_search.h"

#include <fmt/format.h>

namespace lockstep {

Price price_once(PriceJournal& journal, const std::string& key,
                 const std::function<PricedStep()>& replay) {
  if (std::optional<PricedStep> known = journal.find(key)) {
    return *known;
  }
  try {
    PricedStep step = replay();
    journal.add(key, step);
    return step;
  } catch (const ReplayGivenUp& given_up) {
    return Price(given_up.work());
  }
}

std::vector<std::string> search_notes(const JobPlanOptions& options, const SearchFacts& facts) {
  std::vector<std::string> notes;
  if (facts.sprayed && !options.spray) {
    notes.emplace_back(
        "with hashed routes too few ranks are alike for a replay of this size: all plans are "
        "replayed with sprayed ones");
  }
  if (facts.too_large > 0) {
    notes.push_back(fmt::format(
        "{} plans that came first are too large for the replay, more than {} operations of ranks "
        "that differ or twice the effort: their closed form bounds them (--max-replay, "
        "--effort)",
        facts.too_large, options.max_replay));
  }
  if (!facts.best_priced) {
    notes.emplace_back("no plan could be replayed: the best is that of the closed form");
  }
  if (facts.stopped) {
    notes.emplace_back("the search was stopped before its end");
  }
  return notes;
}

}  // namespace lockstep
