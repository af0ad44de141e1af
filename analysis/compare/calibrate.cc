#include "analysis/compare/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

using Field = NcclRateField;
using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

// A fit takes some ten thousand predictions a row in the worst case.
constexpr std::size_t kMostRowsToFit = 2500;
constexpr double kHuber = 0.4;
constexpr double kWidest = 4;  // high / low of an interval that still says something

double size_in_log(const Field& field, double value) {
  return std::log(std::max(value, std::max(field.least, 1e-3)));
}

void set_rate(NcclRates& rates, const Field& field, double log_value) {
  rates.*field.value = std::clamp(std::exp(log_value), std::max(field.least, 1e-3), field.most);
}

double residual(const ComparedRow& row, const NcclSystem& system) {
  return std::log(nccl_time(row.task, system, row.predicted.choice).time_us / row.measured_us);
}

double median_of_sizes(Vector values) {
  for (double& value : values) {
    value = std::abs(value);
  }
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Inverse of a symmetric positive definite matrix by Gauss-Jordan; empty if it is singular.
Matrix inverse(Matrix a) {
  const std::size_t n = a.size();
  Matrix b(n, Vector(n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    b[i][i] = 1;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r) {
      pivot = std::abs(a[r][i]) > std::abs(a[pivot][i]) ? r : pivot;
    }
    if (std::abs(a[pivot][i]) < 1e-12) {
      return {};
    }
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    const double scale = 1 / a[i][i];
    for (std::size_t c = 0; c < n; ++c) {
      a[i][c] *= scale;
      b[i][c] *= scale;
    }
    for (std::size_t r = 0; r < n; ++r) {
      const double factor = r == i ? 0 : a[r][i];
      for (std::size_t c = 0; c < n && factor != 0; ++c) {
        a[r][c] -= factor * a[i][c];
        b[r][c] -= factor * b[i][c];
      }
    }
  }
  return b;
}

/// The least-squares problem for some rates on some rows.
class Fit {
 public:
  Fit(const std::vector<const ComparedRow*>& rows, std::vector<const Field*> fields,
      NcclSystem system)
      : rows_(rows), fields_(std::move(fields)), system_(system) {
    std::map<const CommSetting*, double> count;
    for (const ComparedRow* row : rows_) {
      count[row->setting] += weight(*row);
    }
    const double share = static_cast<double>(rows_.size()) / static_cast<double>(count.size());
    for (const ComparedRow* row : rows_) {
      balance_.push_back(share * weight(*row) / count[row->setting]);
    }
  }

  /// A cap that no row reaches and a latency of zero have no slope to follow: each of these rates
  /// in turn is set to that value of a coarse scale at which the loss is least, if by a hundredth.
  void scan() {
    evaluate(residuals_, system_);
    double cost = weigh();
    std::vector<std::size_t> flat;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (rows_that_depend(i) == 0) {
        flat.push_back(i);
      }
    }
    for (const std::size_t i : flat) {
      const Field& field = *fields_[i];
      const double at = system_.rates.*field.value;
      NcclSystem best = system_;
      for (double scale = 1.0 / 64; scale <= 64; scale *= 2) {
        NcclSystem trial = system_;
        set_rate(trial.rates, field, std::log(at > field.least + 1e-9 ? at * scale : 8 * scale));
        Vector fresh;
        evaluate(fresh, trial);
        const double then = cost_of(fresh);
        if (then < 0.99 * cost) {
          cost = then;
          best = trial;
        }
      }
      system_ = best;
    }
    is_linear_ = false;
  }

  void run() {
    double damping = 1e-3;
    evaluate(residuals_, system_);
    double cost = weigh();
    for (int round = 0; round < 60; ++round) {
      linearise();
      bool better = false;
      for (int attempt = 0; attempt < 8 && !better; ++attempt) {
        Matrix damped = information_;
        for (std::size_t i = 0; i < damped.size(); ++i) {
          damped[i][i] += damping * (damped[i][i] + 1e-9);
        }
        const Matrix solved = inverse(damped);
        if (solved.empty()) {
          damping *= 10;
          continue;
        }
        NcclSystem trial = system_;
        for (std::size_t i = 0; i < fields_.size(); ++i) {
          double step = 0;
          for (std::size_t k = 0; k < fields_.size(); ++k) {
            step -= solved[i][k] * gradient_[k];
          }
          set_rate(trial.rates, *fields_[i],
                   size_in_log(*fields_[i], system_.rates.*fields_[i]->value) +
                       std::clamp(step, -1.0, 1.0));
        }
        Vector fresh;
        evaluate(fresh, trial);
        const double then = cost_of(fresh);
        if (then < cost) {
          better = true;
          const bool little = cost - then < 1e-9 * cost;
          system_ = trial;
          residuals_ = std::move(fresh);
          is_linear_ = false;
          cost = weigh();
          damping = std::max(damping / 10, 1e-9);
          if (little) {
            return;
          }
        } else {
          damping *= 10;
        }
      }
      if (!better) {
        return;
      }
    }
  }

  const NcclSystem& system() const { return system_; }

  /// Standard errors of the logarithms; infinite where the data say nothing.
  Vector standard_errors() {
    linearise();
    const std::size_t n = fields_.size();
    Vector errors(n, INFINITY);
    double sum = 0;
    for (std::size_t i = 0; i < residuals_.size(); ++i) {
      sum += weights_[i] * residuals_[i] * residuals_[i];
    }
    const double variance =
        sum / std::max(1.0, static_cast<double>(residuals_.size()) - static_cast<double>(n)) + 1e-8;
    Matrix damped = information_;
    for (std::size_t i = 0; i < n; ++i) {
      damped[i][i] += 1e-9;
    }
    const Matrix covariance = inverse(damped);
    for (std::size_t i = 0; i < n && !covariance.empty(); ++i) {
      errors[i] = covariance[i][i] > 0 ? std::sqrt(variance * covariance[i][i]) : INFINITY;
    }
    return errors;
  }

  /// How many rows depend on a rate: a tenth more of it changes them by half a percent.
  std::size_t rows_that_depend(std::size_t field) {
    linearise();
    std::size_t count = 0;
    for (const Vector& row : jacobian_) {
      count += std::abs(row[field]) > 0.05 ? 1U : 0U;
    }
    return count;
  }

  /// How much the rows depend on a rate together.
  double influence(std::size_t field) {
    linearise();
    double sum = 0;
    for (const Vector& row : jacobian_) {
      sum += std::abs(row[field]);
    }
    return sum;
  }

 private:
  void evaluate(Vector& out, const NcclSystem& system) const {
    out.clear();
    for (const ComparedRow* row : rows_) {
      out.push_back(residual(*row, system));
    }
  }

  /// Where the time goes counts more.
  static double weight(const ComparedRow& row) {
    return row.task.bytes.count() >= (1 << 20) ? 5 : 1;
  }

  double weigh() {
    scale_ = std::max(1.4826 * median_of_sizes(residuals_), 1e-4);
    weights_.clear();
    for (std::size_t i = 0; i < residuals_.size(); ++i) {
      const double size = std::max(std::abs(residuals_[i]), 1e-12);
      weights_.push_back(balance_[i] * std::min(1.0, kHuber * scale_ / size));
    }
    return cost_of(residuals_);
  }

  /// Huber's loss at the present scale.
  double cost_of(const Vector& residuals) const {
    double sum = 0;
    const double knee = kHuber * scale_;
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      const double size = std::abs(residuals[i]);
      sum += balance_[i] * (size <= knee ? size * size : knee * (2 * size - knee));
    }
    return std::isfinite(sum) ? sum : 1e300;
  }

  /// The problem's linear part at the present rates, unless it is at hand.
  void linearise() {
    if (is_linear_) {
      return;
    }
    is_linear_ = true;
    const std::size_t n = fields_.size();
    jacobian_.assign(rows_.size(), Vector(n, 0));
    for (std::size_t i = 0; i < n; ++i) {
      NcclSystem moved = system_;
      constexpr double kStep = 1e-4;
      const double at = size_in_log(*fields_[i], system_.rates.*fields_[i]->value);
      moved.rates.*fields_[i]->value = std::exp(at + kStep);
      NcclSystem base = system_;
      base.rates.*fields_[i]->value = std::exp(at);
      const bool is_here = std::abs(system_.rates.*fields_[i]->value / std::exp(at) - 1) < 1e-12;
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        const double before = is_here ? residuals_[r] : residual(*rows_[r], base);
        jacobian_[r][i] = (residual(*rows_[r], moved) - before) / kStep;
      }
    }
    information_.assign(n, Vector(n, 0));
    gradient_.assign(n, 0);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      for (std::size_t i = 0; i < n; ++i) {
        gradient_[i] += weights_[r] * jacobian_[r][i] * residuals_[r];
        for (std::size_t k = 0; k < n; ++k) {
          information_[i][k] += weights_[r] * jacobian_[r][i] * jacobian_[r][k];
        }
      }
    }
  }

  const std::vector<const ComparedRow*>& rows_;
  std::vector<const Field*> fields_;
  NcclSystem system_;
  Vector balance_;  ///< each table counts alike
  Vector residuals_, weights_, gradient_;
  Matrix jacobian_, information_;
  double scale_ = 1;
  bool is_linear_ = false;
};

struct Halves {
  std::vector<const ComparedRow*> training, held_out;
  std::size_t training_tables = 0, held_out_tables = 0;
};

Halves split(const std::vector<ComparedRow>& rows) {
  std::set<std::string> ids;
  for (const ComparedRow& row : rows) {
    ids.insert(row.setting->id);
  }
  Halves halves;
  std::map<std::string, bool> trains;
  bool next = true;
  for (const std::string& id : ids) {
    trains[id] = next;
    ++(next ? halves.training_tables : halves.held_out_tables);
    next = !next;
  }
  bool odd = true;
  for (const ComparedRow& row : rows) {
    const bool training = ids.size() > 1 ? trains[row.setting->id] : odd;
    (training ? halves.training : halves.held_out).push_back(&row);
    odd = !odd;
  }
  return halves;
}

/// Evenly picked, in order.
std::vector<const ComparedRow*> at_most(std::size_t most,
                                        const std::vector<const ComparedRow*>& rows) {
  if (rows.size() <= most) {
    return rows;
  }
  std::vector<const ComparedRow*> picked;
  for (std::size_t i = 0; i < most; ++i) {
    picked.push_back(rows[i * rows.size() / most]);
  }
  return picked;
}

ErrorStatistics errors_of(const std::vector<const ComparedRow*>& rows, const NcclSystem& system,
                          bool large) {
  Vector errors;
  for (const ComparedRow* row : rows) {
    if (!large || row->task.bytes.count() >= (1 << 20)) {
      errors.push_back(std::exp(residual(*row, system)) - 1);
    }
  }
  return error_statistics(errors);
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

}  // namespace

Calibration calibrate(const std::vector<ComparedRow>& rows, const CompareWishes& wishes,
                      const std::vector<std::string>& names) {
  if (rows.size() < 6) {
    throw Error(fmt::format("only {} measurements can be predicted", rows.size()))
        .expected("six or more, better some tables")
        .hint("--preset and --gpus tell what the logs do not");
  }
  Calibration result;
  std::set<std::string> systems, sources;
  for (const ComparedRow& row : rows) {
    const TableSetting table = table_setting(*row.setting, wishes);
    systems.insert(table.preset.name);
    sources.insert(row.setting->id);
    result.preset = table.preset;
  }
  if (systems.size() > 1) {
    std::string list;
    for (const std::string& system : systems) {
      list += (list.empty() ? "" : ", ") + system;
    }
    throw Error("these are logs of several kinds of cluster: " + list)
        .hint("calibrate one at a time, or name the --preset to start from");
  }
  const Halves halves = split(rows);
  const std::vector<const ComparedRow*> fitted_rows = at_most(kMostRowsToFit, halves.training);
  result.training_tables = halves.training_tables;
  result.held_out_tables = halves.held_out_tables;
  NcclSystem system = result.preset.system;
  std::vector<const Field*> fields = fields_named(names);
  result.before_held_out_large = errors_of(halves.held_out, system, true);
  for (;;) {
    if (fields.empty()) {
      throw Error("the logs determine none of the rates").hint("more sizes, or more tables");
    }
    Fit fit(fitted_rows, fields, system);
    fit.scan();
    fit.run();
    const Vector errors = fit.standard_errors();
    // The rate that the fewest rows depend on goes first, if these are fewer than there are rates;
    // of equals the one with the least influence, of two that go together the later one.
    const std::size_t needed = std::max<std::size_t>(3, fields.size());
    std::size_t worst = fields.size();
    std::pair<std::size_t, double> least{needed, 0};
    std::string why;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::pair<std::size_t, double> here{fit.rows_that_depend(i), fit.influence(i)};
      if (here < least) {
        least = here;
        worst = i;
        why = fmt::format("only {} rows depend on it", here.first);
      }
    }
    for (std::size_t i = 0; i < fields.size() && why.empty(); ++i) {
      const double width = 2 * 1.96 * errors[i];
      if (!(width <= std::log(kWidest))) {
        worst = i;
      }
    }
    if (worst < fields.size() && why.empty()) {
      why = "the rows do not tell it from the others";
    }
    if (worst == fields.size()) {
      system = fit.system();
      for (std::size_t i = 0; i < fields.size(); ++i) {
        const Field& field = *fields[i];
        const double after = system.rates.*field.value * field.unit;
        const double spread = std::exp(1.96 * errors[i]);
        result.fitted.push_back({std::string(field.name),
                                 result.preset.system.rates.*field.value * field.unit,
                                 after,
                                 {after / spread, after * spread}});
      }
      break;
    }
    if (!names.empty()) {
      throw Error(fmt::format("the logs do not determine {}: {}", fields[worst]->name, why))
          .field("--fit")
          .hint("leave it out, or bring more tables");
    }
    result.left.push_back(fmt::format("{}: {}", fields[worst]->name, why));
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(worst));
  }
  result.training = errors_of(halves.training, system, false);
  result.held_out = errors_of(halves.held_out, system, false);
  result.training_large = errors_of(halves.training, system, true);
  result.held_out_large = errors_of(halves.held_out, system, true);
  result.preset.system = system;
  result.preset.intervals.clear();
  for (const FittedRate& rate : result.fitted) {
    result.preset.intervals[rate.name] = rate.interval;
  }
  result.preset.provenance.push_back(fmt::format(
      "fitted to {} rows of {} tables, judged on {} rows of {}: median error {} from 1 MiB on",
      fitted_rows.size(), halves.training_tables, halves.held_out.size(), halves.held_out_tables,
      percent(result.held_out_large.median)));
  std::size_t listed = 0;
  for (const std::string& source : sources) {
    if (++listed > 20) {
      result.preset.provenance.push_back(fmt::format("and {} more", sources.size() - 20));
      break;
    }
    result.preset.provenance.push_back("table " + source);
  }
  return result;
}

}  // namespace lockstep::compare
