#include "app/plan/priced_search.h"

#include <fmt/format.h>

namespace lockstep {

Price price_once(PriceJournal& journal, const std::string& key, const ReplayLimits& limits,
                 const std::function<PricedStep(const ReplayLimits& limits)>& replay) {
  const double latest_s = limits.latest.seconds();
  if (const std::optional<Price> known = journal.find(key);
      known && (known->step || known->beyond_s >= latest_s)) {
    return *known;
  }
  Price price(0);
  try {
    price = replay(limits);
  } catch (const ReplayGivenUp& given_up) {
    price = Price(given_up.work(), given_up.late() ? latest_s : 0);
  }
  if (price.step || price.beyond_s > 0) {
    journal.add(key, price);
  }
  return price;
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
        "that differ or too much of the effort: their closed form bounds them (--max-replay, "
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
