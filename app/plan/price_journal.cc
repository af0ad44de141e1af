#include "app/plan/price_journal.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

std::int64_t work_of(const JsonView& line) {
  return line["work"].integer(0, std::numeric_limits<std::int64_t>::max() / 1024);
}

PricedStep step_of(const JsonView& line) {
  PricedStep step;
  step.step_s = line["step_s"].number();
  step.compute_s = line["compute_s"].number();
  const JsonView exposed = line["exposed_s"];
  if (exposed.size() != step.exposed_s.size()) {
    throw exposed.error(fmt::format("expected {} numbers", step.exposed_s.size()));
  }
  for (std::size_t i = 0; i < step.exposed_s.size(); ++i) {
    step.exposed_s[i] = exposed[i].number();
  }
  if (line.has("bubble_s")) {
    step.bubble_s = line["bubble_s"].number();
  }
  if (line.has("work")) {
    step.work = work_of(line);
  }
  if (!(step.step_s > 0)) {
    throw line["step_s"].error("expected a time above 0");
  }
  return step;
}

Price price_of(const JsonView& line) {
  if (!line.has("beyond_s")) {
    return step_of(line);
  }
  if (!(line["beyond_s"].number() > 0)) {
    throw line["beyond_s"].error("expected a time above 0");
  }
  return Price(work_of(line), line["beyond_s"].number());
}

constexpr JournalKind kPrices{"lockstep-plan-prices/1", "plan",
                              [](const JsonView& line) { price_of(line); }};

Price price_of(const Json& line) { return price_of(JsonView(line, "the journal")); }

}  // namespace

std::map<std::string, Price> read_price_journal(std::string_view text, const std::string& file,
                                                std::string_view problem) {
  std::map<std::string, Price> prices;
  for (const auto& [plan, line] : read_line_journal(text, file, kPrices, problem)) {
    prices.emplace(plan, price_of(line));
  }
  return prices;
}

PriceJournal::PriceJournal(std::string path, std::string problem)
    : lines_(std::move(path), kPrices, std::move(problem)) {}

std::optional<Price> PriceJournal::find(const std::string& plan) const {
  const std::optional<Json> line = lines_.find(plan);
  return line ? std::optional(price_of(*line)) : std::nullopt;
}

void PriceJournal::add(const std::string& plan, const Price& price) {
  if (!price.step) {
    lines_.add(plan, {{"beyond_s", price.beyond_s}, {"work", price.work}});
    return;
  }
  lines_.add(plan, {{"step_s", price.step->step_s},
                    {"compute_s", price.step->compute_s},
                    {"exposed_s", price.step->exposed_s},
                    {"bubble_s", price.step->bubble_s},
                    {"work", price.step->work}});
}

}  // namespace lockstep
