#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"

namespace lockstep {

class Straggler;
class StragglerPlan;
struct StragglerContext;

/// A field of a model's SPEC, in its order.
struct StragglerField {
  std::string_view name;
  std::string_view otherwise;  ///< taken where it is left out; empty: it must be given
  std::string_view help;
};

/// A kind of straggler or fault; one file in stragglers/ defines one.
struct StragglerModel {
  std::string_view name, summary;
  std::span<const StragglerField> fields;
  /// Adds what it does to a run. ERRORS: Error that names the field at fault.
  void (*apply)(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan);
  bool keeps_rings = false;  ///< links of a server, or all its ranks, may differ (tune.h)
  bool fails_links = false;  ///< transfers may have to find other ways in mid-run
};

/// Sorted by file name.
std::span<const StragglerModel* const> straggler_models();
/// ERRORS: Error for an unknown name, with the nearest.
const StragglerModel& straggler_model_named(std::string_view name);

/// One straggler as the user wrote it:
///
///     MODEL:FIELD:FIELD…[@FROM[-UNTIL]]      gpu:3:1.5     link:12-40:0.5@10ms gc:*:50ms:1s@0s-4s
///
/// Fields that may be left out are left out from the end. Sets of ranks, servers and so on are
/// lists of numbers and ranges: 3, 0-7, 0-3,8, or * for all.
class Straggler {
 public:
  /// ERRORS: Error with field `--straggler SPEC` and the model's usage.
  static Straggler parse(std::string_view spec);
  /// From a scenario file: values by the names of the model's fields. ERRORS: as parse().
  struct Value {
    std::string field, text;
  };
  static Straggler make(const StragglerModel& model, std::span<const Value> values,
                        std::string_view from, std::string_view until);

  const StragglerModel& model() const { return *model_; }
  const std::string& text() const { return text_; }  ///< as SPEC
  Time from() const { return from_; }
  Time until() const { return until_; }  ///< Time::max(): for good
  bool timed() const { return from_ > Time() || until_ < Time::max(); }
  /// Which of its run's stragglers it is, for its draws; where it is not set, its place among those
  /// that a plan is made of. What it draws stays the same then where others are left out.
  std::optional<std::uint64_t> place() const { return place_; }
  void keep_place(std::uint64_t place) { place_ = place; }
  /// Where a scenario names it: errors about it say so.
  void set_source(std::string_view file, std::size_t line) {
    file_ = file;
    line_ = line;
  }
  void locate(Error& error) const {
    if (!file_.empty()) {
      error.locate(file_, line_);
    }
  }

  const std::string& value(std::size_t field) const { return values_[field]; }
  double number(std::size_t field, double low, double high) const;
  Time time(std::size_t field) const;
  Bandwidth bandwidth(std::size_t field) const;
  /// Which of `count` things the field names, ascending. `what`: "rank", for messages.
  std::vector<std::int32_t> set(std::size_t field, std::int64_t count, std::string_view what) const;
  /// Two numbers with a dash between them.
  std::pair<std::int64_t, std::int64_t> pair(std::size_t field) const;
  /// One of some words.
  std::size_t word(std::size_t field, std::span<const std::string_view> words) const;

  /// An Error about a field, and one about the whole.
  Error error(std::size_t field, std::string message) const;
  Error error(std::string message) const;

 private:
  void settle(std::string_view from, std::string_view until);

  const StragglerModel* model_ = nullptr;
  std::string text_;
  std::vector<std::string> values_;
  Time from_, until_ = Time::max();
  std::optional<std::uint64_t> place_;
  std::string file_;  // of a scenario
  std::size_t line_ = 0;
};

/// Whether some straggler's model keeps rings; fails links.
bool keep_rings(std::span<const Straggler> stragglers);
bool fail_links(std::span<const Straggler> stragglers);

/// "gpu:GPUS:FACTOR[@FROM[-UNTIL]]".
std::string usage_of(const StragglerModel& model);
/// All models with their fields, for --help.
std::string straggler_help();

}  // namespace lockstep
