#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "planner/job/job_search.h"

namespace lockstep {

/// Prices of plans in a file of JSON lines (docs/formats/plan-json.md), so that a search that was
/// ended, or one with more effort, does not price the same plan twice. The first line tells what
/// the prices are of. Safe for several threads.
class PriceJournal {
 public:
  /// Opens or begins it; an empty path keeps nothing. A last line that was cut off is passed over.
  /// ERRORS: it is of another problem, or no journal; it cannot be read or written.
  PriceJournal(std::string path, std::string problem);

  std::optional<PricedStep> find(const std::string& plan) const;
  /// Appends a price and writes it out at once. ERRORS: it cannot be written.
  void add(const std::string& plan, const PricedStep& step);

 private:
  void append(const std::string& line) const;

  std::string path_;
  mutable std::mutex mutex_;
  std::map<std::string, PricedStep> known_;
};

/// Reads a journal's text into prices by plan. ERRORS: Error with file and line.
std::map<std::string, PricedStep> read_price_journal(std::string_view text, const std::string& file,
                                                     std::string_view problem);

}  // namespace lockstep
