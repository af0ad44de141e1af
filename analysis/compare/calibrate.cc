#include "analysis/compare/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/compare/cross_validation.h"
#include "analysis/compare/rates_fit.h"
#include "base/error.h"
#include "base/student_t.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

using Field = NcclRateField;
using Rows = std::vector<const ComparedRow*>;

// A fit takes some ten thousand predictions a row in the worst case.
constexpr std::size_t kMostRowsToFit = 1500;
constexpr std::size_t kMostRowsToValidate = 600;
constexpr double kWidest = 4;            // high / low of an interval that still says something
constexpr double kMostUnknown = 0.99;    // of what was not known beforehand, see RatesFit::unknown
constexpr std::size_t kRowsPerRate = 3;  // at least
// How far from the preset its rates may well be, in logarithms.
constexpr double kSpreads[] = {0.05, 0.1, 0.2, 0.35, INFINITY};

struct Halves {
  Rows training, held_out;
  std::size_t training_tables = 0, held_out_tables = 0;
};

Rows pointers_to(const std::vector<ComparedRow>& rows) {
  Rows pointers;
  for (const ComparedRow& row : rows) {
    pointers.push_back(&row);
  }
  return pointers;
}

Halves split(const std::vector<ComparedRow>& rows, TrainingHalf half) {
  const std::map<const CommSetting*, std::size_t> tables = table_numbers(pointers_to(rows));
  const std::size_t first = half == TrainingHalf::kFirst ? 0 : 1;
  Halves halves;
  halves.training_tables = (tables.size() + 1 - first) / 2;
  halves.held_out_tables = tables.size() - halves.training_tables;
  // Of one table every second size, so that no half has measured what the other is judged on.
  using Size = std::tuple<CommType, std::int32_t, std::int32_t, std::int64_t>;
  const auto size_of = [](const ComparedRow& row) {
    return Size(row.task.op, row.task.ranks, row.task.servers, row.task.bytes.count());
  };
  std::map<Size, bool> size_trains;
  for (const ComparedRow& row : rows) {
    size_trains.emplace(size_of(row), false);
  }
  bool next = first == 0;
  for (auto& [size, training] : size_trains) {
    training = next;
    next = !next;
  }
  for (const ComparedRow& row : rows) {
    const bool training =
        tables.size() > 1 ? tables.at(row.setting) % 2 == first : size_trains[size_of(row)];
    (training ? halves.training : halves.held_out).push_back(&row);
  }
  return halves;
}

/// Evenly picked, in order.
Rows at_most(std::size_t most, const Rows& rows) {
  if (rows.size() <= most) {
    return rows;
  }
  Rows picked;
  for (std::size_t i = 0; i < most; ++i) {
    picked.push_back(rows[i * rows.size() / most]);
  }
  return picked;
}

std::vector<double> row_errors(const Rows& rows, const NcclSystem& system, bool large) {
  std::vector<double> errors;
  for (const ComparedRow* row : rows) {
    if (!large || row->task.bytes.count() >= (1 << 20)) {
      errors.push_back(std::exp(log_error(*row, system)) - 1);
    }
  }
  return errors;
}

ErrorStatistics errors_of(const Rows& rows, const NcclSystem& system, bool large) {
  return error_statistics(row_errors(rows, system, large));
}

std::vector<const Field*> fields_named(const std::vector<std::string>& names) {
  std::vector<const Field*> fields;
  std::vector<std::string_view> known;
  for (const Field& field : nccl_rate_fields()) {
    known.push_back(field.name);
    if (names.empty() || std::ranges::find(names, field.name) != names.end()) {
      fields.push_back(&field);
    }
  }
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) {
      throw Error("there is no rate '" + printable(name) + "'")
          .field("--fit")
          .expected(join(known, ", "));
    }
  }
  return fields;
}

/// Rates that the rows determine, fitted; and why the others are not.
struct Determined {
  std::vector<const Field*> fields;
  NcclSystem system;
  std::vector<double> errors;  ///< half the width of 95 % intervals of the logarithms
  std::vector<std::string> left;
};

/// The field that the rows determine least, and why they do not; no text if they determine all.
std::pair<std::size_t, std::string> least_determined(RatesFit& fit, std::size_t rows,
                                                     std::size_t fields,
                                                     const std::vector<double>& errors,
                                                     double spread) {
  // The rate that the fewest rows depend on goes first, if these are fewer than three, or than
  // there are rates where nothing is known beforehand; of equals the one with the least influence.
  const std::size_t needed = std::isfinite(spread) ? 3 : std::max<std::size_t>(3, fields);
  std::pair<std::size_t, std::string> worst(fields, "");
  std::pair<std::size_t, double> least(needed, 0);
  for (std::size_t i = 0; i < fields; ++i) {
    const std::pair<std::size_t, double> here(fit.rows_that_depend(i), fit.influence(i));
    if (here < least) {
      least = here;
      worst = {i, fmt::format("only {} rows depend on it", here.first)};
    }
  }
  if (!worst.second.empty()) {
    return worst;
  }
  for (std::size_t i = 0; i < fields; ++i) {
    if (fit.unknown(i) > kMostUnknown) {
      return {i, "the rows say little of it"};
    }
  }
  if (kRowsPerRate * fields > rows) {
    const auto widest = std::ranges::max_element(errors) - errors.begin();
    return {static_cast<std::size_t>(widest), "too few rows for so many rates"};
  }
  for (std::size_t i = 0; i < fields && worst.second.empty(); ++i) {
    const std::size_t later = fields - 1 - i;  // of two that go together
    if (!(2 * errors[later] <= std::log(kWidest))) {
      worst = {later, "the rows do not tell it from the others"};
    }
  }
  return worst;
}

/// What is no longer physical: a part of a link's rate above all of it, hops of NCCL's tables off
/// by more than tenfold, and wherever the fit was stopped by a rate's bounds. Rates that start
/// outside may stay there. Empty: it is.
std::string unphysical(const Field& field, double value, double start) {
  if (std::abs(value - start) <= 1e-6 * std::abs(start)) {
    return {};
  }
  const auto at = [&](double bound) { return bound > 0 && std::abs(value / bound - 1) < 1e-3; };
  const std::string_view name = field.name;
  const bool part = name.ends_with("efficiency") || name == "duplex";
  if ((at(field.least) || at(field.most)) && !(part && at(1))) {
    return fmt::format("the fit runs into its bound, {:.4g}", value * field.unit);
  }
  if (part && value > 1 && start <= 1) {
    return fmt::format("the fit makes it {:.3g}, more than all of a link", value);
  }
  const bool hops =
      name.ends_with("_latency") || name == "simple_penalty" || name == "local_simple";
  if (hops && (value > 10 || value < 0.05) && start <= 10 && start >= 0.05) {
    return fmt::format("the fit makes it {:.3g} of NCCL's own value", value);
  }
  return {};
}

/// Fits, and leaves out one rate after another until the rows determine all that are left.
Determined determined(const Rows& rows, std::vector<const Field*> fields, const NcclSystem& start,
                      double spread, bool named) {
  Determined result;
  result.system = start;
  while (!fields.empty()) {
    RatesFit fit(rows, fields, start, spread);
    fit.run();
    // Rates that no row depends on, and that stayed where they were, go all at once.
    std::vector<const Field*> kept;
    for (std::size_t i = 0; i < fields.size() && !named; ++i) {
      if (fit.rows_that_depend(i) == 0 &&
          fit.system().rates.*fields[i]->value == start.rates.*fields[i]->value) {
        result.left.push_back(fmt::format("{}: no row depends on it", fields[i]->name));
      } else {
        kept.push_back(fields[i]);
      }
    }
    if (!named && kept.size() < fields.size()) {
      fields = std::move(kept);
      continue;
    }
    const double width = student_t_95(
        std::max<std::size_t>(2, rows.size() + 1 - std::min(rows.size(), fields.size())));
    std::vector<double> errors = fit.interval_errors();
    for (double& error : errors) {
      error *= width;
    }
    auto [worst, why] = least_determined(fit, named ? kRowsPerRate * fields.size() : rows.size(),
                                         fields.size(), errors, spread);
    for (std::size_t i = 0; i < fields.size() && why.empty(); ++i) {
      const auto value = fields[i]->value;
      why = unphysical(*fields[i], fit.system().rates.*value, start.rates.*value);
      worst = i;
    }
    if (why.empty()) {
      result.errors = std::move(errors);
      result.fields = std::move(fields);
      result.system = fit.system();
      return result;
    }
    if (named) {
      throw Error(fmt::format("the logs do not determine {}: {}", fields[worst]->name, why))
          .field("--fit")
          .hint("leave it out, or bring more tables");
    }
    result.left.push_back(fmt::format("{}: {}", fields[worst]->name, why));
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(worst));
  }
  return result;
}

std::string tables_text(std::size_t tables) {
  return fmt::format("{} table{}", tables, tables == 1 ? "" : "s");
}

void add_once(std::vector<std::string>& lines, std::string line) {
  if (std::ranges::find(lines, line) == lines.end()) {
    lines.push_back(std::move(line));
  }
}

/// Whether a line of provenance is of the kind that a calibration writes.
bool is_of_a_fit(const std::string& line) {
  return line.starts_with("table ") || line.starts_with("rates kept, as fits") ||
         line.find("fitted to ") != std::string::npos ||
         (line.starts_with("and ") && line.ends_with(" more tables"));
}

}  // namespace

Calibration calibrate(const std::vector<ComparedRow>& rows, const CompareWishes& wishes,
                      const std::vector<std::string>& names, TrainingHalf half) {
  if (rows.size() < 6) {
    throw Error(fmt::format("only {} measurements can be predicted", rows.size()))
        .expected("six or more, better some tables")
        .hint("--preset and --gpus tell what the logs do not");
  }
  Calibration result;
  std::set<std::string> systems;
  std::set<const CommSetting*> tables;
  std::map<std::string, std::size_t> tables_named;
  for (const ComparedRow& row : rows) {
    if (!tables.insert(row.setting).second) {
      continue;
    }
    ++tables_named[row.setting->id];
    if (std::optional<Preset> preset = cluster_preset(*row.setting, wishes)) {
      systems.insert(preset->name);
      result.preset = std::move(*preset);
    }
  }
  if (systems.size() > 1) {
    std::string list;
    for (const std::string& system : systems) {
      list += (list.empty() ? "" : ", ") + system;
    }
    throw Error("these are logs of several kinds of cluster: " + list)
        .hint("calibrate one at a time, or name the --preset to start from");
  }
  const Halves halves = split(rows, half);
  if (halves.training.empty() || halves.held_out.empty()) {
    throw Error("all rows are of one table and one size, so that none is left to judge a fit on")
        .expected("two sizes, better two tables");
  }
  const Rows fitted_rows = at_most(kMostRowsToFit, halves.training);
  result.training_tables = halves.training_tables;
  result.held_out_tables = halves.held_out_tables;
  NcclSystem system = result.preset.system;
  const std::vector<const Field*> fields = fields_named(names);
  result.before_held_out_errors = row_errors(halves.held_out, system, true);
  result.before_held_out_large = error_statistics(result.before_held_out_errors);
  const CrossValidation validation(at_most(kMostRowsToValidate, halves.training));
  result.preset_validated = validation.error(system);
  Determined found;
  result.validated.mean = INFINITY;
  result.preset_kept = true;
  for (const double spread : kSpreads) {
    if (!names.empty() && std::isfinite(spread)) {
      continue;  // what a user names may be anything
    }
    Determined one = determined(fitted_rows, fields, system, spread, !names.empty());
    const ValidatedError error =
        one.fields.empty() ? result.preset_validated : validation.error(one.fields, system, spread);
    // What a user names is fitted unless the preset's are better; else it must do better.
    const bool kept = names.empty() ? !error.better_than(result.preset_validated)
                                    : result.preset_validated.better_than(error);
    if (std::pair(kept, error.mean) < std::pair(result.preset_kept, result.validated.mean)) {
      result.validated = error;
      result.preset_kept = kept;
      found = std::move(one);
    }
  }
  result.left = std::move(found.left);
  if (result.preset_kept) {
    for (const Field* field : found.fields) {
      result.left.push_back(fmt::format("{}: the preset's does no worse", field->name));
    }
  } else {
    for (std::size_t i = 0; i < found.fields.size(); ++i) {
      const Field& field = *found.fields[i];
      const double after = found.system.rates.*field.value * field.unit;
      const double times = std::exp(found.errors[i]);
      result.fitted.push_back({std::string(field.name),
                               system.rates.*field.value * field.unit,
                               after,
                               {after / times, after * times}});
    }
    system = found.system;
  }
  result.training = errors_of(halves.training, system, false);
  result.held_out = errors_of(halves.held_out, system, false);
  result.training_large = errors_of(halves.training, system, true);
  result.held_out_errors = row_errors(halves.held_out, system, true);
  result.held_out_large = error_statistics(result.held_out_errors);
  result.preset.system = system;
  const bool has_large = result.held_out_large.rows > 0;
  const ErrorStatistics& told = has_large ? result.held_out_large : result.held_out;
  const std::string judged =
      fmt::format("judged on {} rows of {}: median error {} and p90 {}{}", halves.held_out.size(),
                  halves.held_out_tables == 0 ? "other sizes of the same table"
                                              : tables_text(halves.held_out_tables),
                  percent(told.median), percent(told.p90),
                  has_large ? " from 1 MiB on" : ", none from 1 MiB on");
  auto& provenance = result.preset.provenance;
  if (result.preset_kept) {
    std::erase_if(provenance,
                  [](const std::string& line) { return line.starts_with("rates kept, as fits"); });
    add_once(provenance,
             fmt::format("rates kept, as fits to {} rows of {} were no better on rows left out; {}",
                         fitted_rows.size(), tables_text(halves.training_tables), judged));
    return result;
  }
  // Earlier fits are told as long as a rate rests on them.
  std::set<std::string> fitted;
  std::string names_text;
  for (const FittedRate& rate : result.fitted) {
    fitted.insert(rate.name);
    names_text += (names_text.empty() ? "" : ", ") + rate.name;
  }
  const bool all = std::ranges::all_of(result.preset.intervals, [&](const auto& interval) {
    return fitted.contains(interval.first);
  });
  if (all) {
    std::erase_if(provenance, is_of_a_fit);
  }
  for (const FittedRate& rate : result.fitted) {
    result.preset.intervals[rate.name] = rate.interval;
  }
  add_once(provenance,
           fmt::format("{}: fitted to {} rows of {}, {}", names_text, fitted_rows.size(),
                       tables_text(halves.training_tables), judged));
  std::size_t listed = 0;
  for (const auto& [name, count] : tables_named) {
    if (listed > 0 && listed + count > 20) {
      add_once(provenance, fmt::format("and {} more tables", tables.size() - listed));
      break;
    }
    listed += count;
    add_once(provenance,
             "table " + name + (count > 1 ? fmt::format(" ({} of this name)", count) : ""));
  }
  return result;
}

}  // namespace lockstep::compare
