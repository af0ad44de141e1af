#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::whatif {

// The arithmetic by which the figures of the original tools (numpy, pandas, CPython) are defined;
// to be equal to the last bit the order of the additions must be theirs.

/// The mean by numpy's pairwise summation: fewer than 8 terms one by one; up to 128 in eight
/// interleaved sums; more are halved at a multiple of 8. PRECONDITION: not empty.
double pairwise_mean(std::span<const double> values);
/// The same with every sum, and the division, rounded to 32 bits.
float pairwise_mean(std::span<const float> values);

/// A running sum with Kahan's compensation, as pandas takes the mean of a group.
class KahanSum {
 public:
  void add(double value) {
    const double y = value - compensation_;
    const double t = sum_ + y;
    compensation_ = (t - sum_) - y;
    sum_ = t;
    ++count_;
  }
  double mean() const { return sum_ / static_cast<double>(count_); }
  std::int64_t count() const { return count_; }

 private:
  double sum_ = 0, compensation_ = 0;
  std::int64_t count_ = 0;
};

/// The middle value, or the mean of the two middle ones. Reorders `values`.
/// PRECONDITION: not empty. Expected O(n).
double median(std::span<float> values);
double median(std::span<double> values);
/// The upper one of the two middle values. The rest as above.
float upper_median(std::span<float> values);

/// CPython's repr of a float: the shortest decimals that give it back, with ".0" for whole numbers.
/// PRECONDITION: finite.
void append_python_float(std::string& out, double value);
/// The same at `to`, where there is room for kPythonFloat bytes; returns where it ends.
char* write_python_float(char* to, double value);
inline constexpr std::size_t kPythonFloat = 64;

/// The order in which CPython iterates a set of small whole numbers that were added one by one
/// (some outputs of the original tools follow it). Duplicates are added once.
/// PRECONDITION: all >= 0.
std::vector<std::int64_t> python_set_order(std::span<const std::int64_t> values);

}  // namespace lockstep::whatif
