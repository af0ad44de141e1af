// The GEMM model against measured products, on the half that bench/fit_gemm.py fits and on the half
// it never sees. Bounds are the scores at the time of fitting, rounded up: a change that makes the
// model worse fails.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "generator/compute/gemm_efficiency.h"
#include "tests/support/reference.h"

namespace lockstep::compute_gemm_test {
namespace {

struct Score {
  std::vector<double> errors;
  double log_sum = 0;

  void add(double model, double measured) {
    errors.push_back(std::abs(model / measured - 1));
    log_sum += std::log(model / measured);
  }
  // The least error that at least this share of the rows does not exceed.
  double quantile(double share) {
    std::ranges::sort(errors);
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(errors.size())));
    return errors.at(rank - 1);
  }
  double bias() const { return std::expm1(log_sum / static_cast<double>(errors.size())); }
};

bool held_out(const GemmShape& shape) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : std::to_string(std::min(shape.m, shape.n)) + "," +
                          std::to_string(std::max(shape.m, shape.n)) + "," +
                          std::to_string(shape.k)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return (hash & 1) != 0;
}

TEST(GemmReference, FittedAndHeldOut) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::string text = testing::slurp(testing::reference_dir() + "/physical/kernels/gemm.csv");
  const std::vector<std::string_view> lines = split(text, '\n');
  std::map<std::pair<std::string, bool>, Score> scores;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::vector<std::string_view> fields = split(trim(lines[i]), ',');
    if (fields.size() < 9) {
      continue;
    }
    // From the end: the first column is free text and may hold commas.
    fields.erase(fields.begin(), fields.end() - 8);
    const std::string_view type = fields[5];
    const bool ampere = fields[0].starts_with("A100");
    const bool h200 = fields[0].starts_with("H200");
    const Precision precision = type.starts_with("BF16")   ? Precision::kBf16
                                : type.starts_with("F32")  ? Precision::kFp32
                                : type.starts_with("FP16") ? Precision::kFp16
                                                           : Precision::kFp8;
    const GemmShape shape{to_int(fields[1]).value(), to_int(fields[2]).value(),
                          to_int(fields[3]).value(), to_int(fields[4]).value()};
    const Time model = gemm_time(shape,
                                 gpu_spec(ampere ? "A100"
                                          : h200 ? "H200"
                                                 : "H100"),
                                 precision);
    const std::string set = (ampere ? "Ampere " : "Hopper ") + std::string(to_text(precision));
    scores[{set, held_out(shape)}].add(model.us(), to_double(fields[7]).value());
  }

  struct Bound {
    double median, p90, bias;
  };
  const std::map<std::string, Bound> bounds{{"Hopper bf16", {0.030, 0.085, 0.01}},
                                            {"Hopper fp32", {0.075, 0.235, 0.035}},
                                            {"Hopper fp8", {0.030, 0.210, 0.02}},
                                            {"Ampere fp16", {0.080, 0.270, 0.07}}};
  std::printf("%-12s %-8s %5s %8s %8s %8s %8s\n", "", "", "rows", "median", "p90", "worst", "bias");
  for (auto& [key, score] : scores) {
    std::printf("%-12s %-8s %5zu %7.1f%% %7.1f%% %7.1f%% %+7.1f%%\n", key.first.c_str(),
                key.second ? "held out" : "fitted", score.errors.size(), 100 * score.quantile(0.5),
                100 * score.quantile(0.9), 100 * score.quantile(1), 100 * score.bias());
    if (key.second) {
      EXPECT_LE(score.quantile(0.5), bounds.at(key.first).median) << key.first;
      EXPECT_LE(score.quantile(0.9), bounds.at(key.first).p90) << key.first;
      EXPECT_LE(std::abs(score.bias()), bounds.at(key.first).bias) << key.first;
    }
  }
  EXPECT_EQ(scores.size(), 8U);
}

}  // namespace
}  // namespace lockstep::compute_gemm_test
