#include "analysis/compare/rates_fit.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::compare {
namespace {

using Field = NcclRateField;
using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

constexpr double kHuber = 0.4;
constexpr double kZero = 1e-3;  // what stands for zero in a logarithm

double size_in_log(const Field& field, double value) {
  return std::log(std::max(value, std::max(field.least, kZero)));
}

void set_rate(NcclRates& rates, const Field& field, double log_value) {
  rates.*field.value = std::clamp(std::exp(log_value), std::max(field.least, kZero), field.most);
}

/// Where the time goes counts more.
double weight(const ComparedRow& row) { return row.task.bytes.count() >= (1 << 20) ? 5 : 1; }

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

}  // namespace

double log_error(const ComparedRow& row, const NcclSystem& system) {
  const NcclRates own = row.rates_with(system.rates);
  return std::log(nccl_time(row.task, row.system, own, row.predicted.choice).time_us /
                  row.measured_us);
}

RatesFit::RatesFit(const std::vector<const ComparedRow*>& rows, std::vector<const Field*> fields,
                   const NcclSystem& start, double spread)
    : rows_(rows), fields_(std::move(fields)), start_(start), system_(start), spread_(spread) {
  std::map<const CommSetting*, double> count;
  for (const ComparedRow* row : rows_) {
    count[row->setting] += weight(*row);
  }
  const double share = static_cast<double>(rows_.size()) / static_cast<double>(count.size());
  for (const ComparedRow* row : rows_) {
    balance_.push_back(share * weight(*row) / count[row->setting]);
  }
}

void RatesFit::run() {
  scan();
  descend();
}

/// A cap that no row reaches and a latency of zero have no slope to follow: each of these rates
/// in turn is set to that value of a coarse scale at which the loss is least, if by a hundredth.
void RatesFit::scan() {
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
      const double then = cost_of(fresh, trial);
      if (then < 0.99 * cost) {
        cost = then;
        best = trial;
      }
    }
    system_ = best;
  }
  is_linear_ = false;
}

void RatesFit::descend() {
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
      const double then = cost_of(fresh, trial);
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

Vector RatesFit::standard_errors() {
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

/// Of an estimate by psi (Huber's): A^-1 B A^-1, where A sums psi' J J^T, which outliers have no
/// part in, and B psi^2 J J^T (Huber and Ronchetti, Robust Statistics, 2nd ed., section 7.6).
Vector RatesFit::interval_errors() {
  linearise();
  const std::size_t n = fields_.size();
  Matrix slope(n, Vector(n, 0)), scatter = slope;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const bool is_outlier = weights_[r] < balance_[r];
    const double psi = weights_[r] * residuals_[r];
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n; ++k) {
        const double product = jacobian_[r][i] * jacobian_[r][k];
        slope[i][k] += is_outlier ? 0 : balance_[r] * product;
        scatter[i][k] += psi * psi * product;
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const bool known = std::isfinite(spread_) && start_.rates.*fields_[i]->value > kZero;
    slope[i][i] += 1e-9 + (known ? scale_ * scale_ / (spread_ * spread_) : 0);
  }
  Vector errors = standard_errors();
  const Matrix bread = inverse(slope);
  const double rows = static_cast<double>(rows_.size());
  const double free = std::max(1.0, rows - static_cast<double>(n));
  for (std::size_t i = 0; i < n && !bread.empty(); ++i) {
    double variance = 0;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        variance += bread[i][a] * scatter[a][b] * bread[b][i];
      }
    }
    errors[i] = std::max(errors[i], std::sqrt(variance * rows / free));
  }
  return errors;
}

double RatesFit::unknown(std::size_t i) {
  linearise();
  if (!std::isfinite(spread_) || start_.rates.*fields_[i]->value <= kZero) {
    return 0;
  }
  const Matrix covariance = inverse(information_);
  return covariance.empty() ? 1 : covariance[i][i] * scale_ * scale_ / (spread_ * spread_);
}

std::size_t RatesFit::rows_that_depend(std::size_t field) {
  linearise();
  std::size_t count = 0;
  for (const Vector& row : jacobian_) {
    count += std::abs(row[field]) > 0.05 ? 1U : 0U;
  }
  return count;
}

double RatesFit::influence(std::size_t field) {
  linearise();
  double sum = 0;
  for (const Vector& row : jacobian_) {
    sum += std::abs(row[field]);
  }
  return sum;
}

void RatesFit::evaluate(Vector& out, const NcclSystem& system) const {
  out.clear();
  for (const ComparedRow* row : rows_) {
    out.push_back(log_error(*row, system));
  }
}

double RatesFit::weigh() {
  scale_ = std::max(1.4826 * median_of_sizes(residuals_), 1e-4);
  weights_.clear();
  for (std::size_t i = 0; i < residuals_.size(); ++i) {
    const double size = std::max(std::abs(residuals_[i]), 1e-12);
    weights_.push_back(balance_[i] * std::min(1.0, kHuber * scale_ / size));
  }
  return cost_of(residuals_, system_);
}

/// How far a rate is from the start, in standard deviations.
double RatesFit::pull(std::size_t i, const NcclSystem& system) const {
  const Field& field = *fields_[i];
  const double start = start_.rates.*field.value;
  return start > kZero ? std::log(std::max(system.rates.*field.value, kZero) / start) / spread_ : 0;
}

/// Huber's loss at the present scale, and what is known beforehand.
double RatesFit::cost_of(const Vector& residuals, const NcclSystem& system) const {
  double sum = 0;
  const double knee = kHuber * scale_;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double size = std::abs(residuals[i]);
    sum += balance_[i] * (size <= knee ? size * size : knee * (2 * size - knee));
  }
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const double away = pull(i, system);
    sum += scale_ * scale_ * away * away;
  }
  return std::isfinite(sum) ? sum : 1e300;
}

/// The problem's linear part at the present rates, unless it is at hand.
void RatesFit::linearise() {
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
      const double before = is_here ? residuals_[r] : log_error(*rows_[r], base);
      jacobian_[r][i] = (log_error(*rows_[r], moved) - before) / kStep;
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
  for (std::size_t i = 0; i < n && std::isfinite(spread_); ++i) {
    if (start_.rates.*fields_[i]->value > kZero) {
      gradient_[i] += scale_ * scale_ * pull(i, system_) / spread_;
      information_[i][i] += scale_ * scale_ / (spread_ * spread_);
    }
  }
}

}  // namespace lockstep::compare
