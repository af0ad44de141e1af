#pragma once

#include <map>
#include <optional>
#include <string>

#include "app/plan/line_journal.h"
#include "planner/job/job_search.h"

namespace lockstep {

/// Prices of plans in a journal (docs/formats/plan-json.md), so that a search that was ended, or
/// one with more effort, does not price the same plan twice. Safe for several threads.
class PriceJournal {
 public:
  /// ERRORS: as LineJournal.
  PriceJournal(std::string path, std::string problem);

  std::optional<Price> find(const std::string& plan) const;
  /// A step, or beyond what time it is known to end. ERRORS: it cannot be written.
  void add(const std::string& plan, const Price& price);

 private:
  LineJournal lines_;
};

/// Reads a journal's text into prices by plan. ERRORS: Error with file and line.
std::map<std::string, Price> read_price_journal(std::string_view text, const std::string& file,
                                                std::string_view problem);

}  // namespace lockstep
