#include "analysis/compare/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

namespace lockstep::compare {
namespace {

constexpr std::size_t kParts = 5;

class Errors {
 public:
  void add(const ComparedRow& row, const NcclSystem& system) {
    const double most = std::log(2.0);
    const bool large = row.task.bytes.count() >= (1 << 20);
    const double size = std::abs(log_error(row, system));
    (large ? large_ : small_).push_back(size);
    const double weight = large ? 5 : 1;
    sum_ += weight * std::min(size, most);
    weights_ += weight;
  }

  ValidatedError result() {
    std::vector<double>& sizes = large_.empty() ? small_ : large_;
    if (sizes.empty()) {
      return {};
    }
    std::ranges::sort(sizes);
    return {sum_ / weights_, sizes[std::min(sizes.size() - 1, sizes.size() * 9 / 10)]};
  }

 private:
  std::vector<double> large_, small_;
  double sum_ = 0, weights_ = 0;
};

}  // namespace

CrossValidation::CrossValidation(const std::vector<const ComparedRow*>& rows) {
  const std::map<const CommSetting*, std::size_t> tables = table_numbers(rows);
  const bool by_table = tables.size() >= kParts;
  const auto key = [&](const ComparedRow* row) {
    return by_table ? static_cast<std::int64_t>(tables.at(row->setting)) : row->task.bytes.count();
  };
  std::map<std::int64_t, std::size_t> part_of;
  for (const ComparedRow* row : rows) {
    part_of.emplace(key(row), 0);
  }
  std::size_t next = 0;
  for (auto& entry : part_of) {
    entry.second = next++ % kParts;
  }
  parts_.resize(std::min(kParts, part_of.size()));
  for (const ComparedRow* row : rows) {
    const std::size_t own = part_of.at(key(row));
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      (part == own ? parts_[part].rows : parts_[part].others).push_back(row);
    }
  }
}

ValidatedError CrossValidation::error(const std::vector<const NcclRateField*>& fields,
                                      const NcclSystem& start, double spread) const {
  Errors errors;
  for (const Part& part : parts_) {
    RatesFit fit(part.others, fields, start, spread);
    fit.run();
    for (const ComparedRow* row : part.rows) {
      errors.add(*row, fit.system());
    }
  }
  return errors.result();
}

ValidatedError CrossValidation::error(const NcclSystem& system) const {
  Errors errors;
  for (const Part& part : parts_) {
    for (const ComparedRow* row : part.rows) {
      errors.add(*row, system);
    }
  }
  return errors.result();
}

}  // namespace lockstep::compare
