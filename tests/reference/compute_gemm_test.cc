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
#include "generator/compute/between_measured.h"
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

/// A line of the table.
struct Row {
  GemmShape shape;
  Precision precision = Precision::kBf16;
  std::string gpu;
  double measured_us = 0;
};

std::vector<Row> read_rows() {
  const std::string text = testing::slurp(testing::reference_dir() + "/physical/kernels/gemm.csv");
  const std::vector<std::string_view> lines = split(text, '\n');
  std::vector<Row> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::vector<std::string_view> fields = split(trim(lines[i]), ',');
    if (fields.size() < 9) {
      continue;
    }
    // From the end: the first column is free text and may hold commas.
    fields.erase(fields.begin(), fields.end() - 8);
    const std::string_view type = fields[5];
    Row& row = rows.emplace_back();
    row.gpu = fields[0].starts_with("A100")   ? "A100"
              : fields[0].starts_with("H200") ? "H200"
                                              : "H100";
    row.precision = type.starts_with("BF16")   ? Precision::kBf16
                    : type.starts_with("F32")  ? Precision::kFp32
                    : type.starts_with("FP16") ? Precision::kFp16
                                               : Precision::kFp8;
    row.shape = {to_int(fields[1]).value(), to_int(fields[2]).value(), to_int(fields[3]).value(),
                 to_int(fields[4]).value()};
    row.measured_us = to_double(fields[7]).value();
  }
  return rows;
}

TEST(GemmReference, FittedAndHeldOut) {
  LOCKSTEP_NEEDS_REFERENCE();
  std::map<std::pair<std::string, bool>, Score> scores;
  for (const Row& row : read_rows()) {
    const Time model = gemm_time(row.shape, gpu_spec(row.gpu), row.precision);
    const std::string set =
        (row.gpu == "A100" ? "Ampere " : "Hopper ") + std::string(to_text(row.precision));
    scores[{set, held_out(row.shape)}].add(model.us(), row.measured_us);
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

// OpenXLA's grid goes in steps of two. Each product but those at the edges is left out once and
// told from its neighbours, four times apart: nearer than the formula tells it.
TEST(GemmReference, BetweenMeasuredOnes) {
  LOCKSTEP_NEEDS_REFERENCE();
  std::map<Precision, std::vector<std::pair<Operator, double>>> grids;
  std::map<Precision, OperatorProfile> profiles;
  for (const Row& row : read_rows()) {
    if (row.gpu != "H100" || row.precision == Precision::kFp8) {
      continue;
    }
    Operator op;
    op.kind = row.shape.batch > 1 ? OperatorKind::kGroupedGemm : OperatorKind::kGemm;
    op.groups = row.shape.batch;
    op.m = row.shape.m;
    op.n = row.shape.n;
    op.k = row.shape.k;
    op.element_bytes = row.precision == Precision::kFp32 ? 4 : 2;
    grids[row.precision].emplace_back(op, row.measured_us);
    profiles[row.precision].times[key_of(op, row.precision)] = {
        Time::seconds(row.measured_us * 1e-6), Time(), 1};
  }
  const std::map<Precision, double> bounds{{Precision::kBf16, 0.025}, {Precision::kFp32, 0.060}};
  for (auto& [precision, grid] : grids) {
    const auto formula = [&, precision = precision](const Operator& op) {
      return gemm_time({op.groups, op.m, op.n, op.k}, gpu_spec("H100"), precision);
    };
    Score told, modelled;
    for (const auto& [op, measured] : grid) {
      auto left_out = profiles[precision].times.extract(key_of(op, precision));
      if (const auto time = between_measured(profiles[precision], op, precision, formula)) {
        told.add(time->us(), measured);
        modelled.add(formula(op).us(), measured);
      }
      profiles[precision].times.insert(std::move(left_out));
    }
    std::printf("%s: %zu products, told %.1f%% %.1f%% %.1f%%, formula %.1f%% %.1f%% %.1f%%\n",
                std::string(to_text(precision)).c_str(), told.errors.size(),
                100 * told.quantile(0.5), 100 * told.quantile(0.9), 100 * told.quantile(1),
                100 * modelled.quantile(0.5), 100 * modelled.quantile(0.9),
                100 * modelled.quantile(1));
    EXPECT_GT(told.errors.size(), 300U);
    EXPECT_LE(told.quantile(0.5), bounds.at(precision));
    EXPECT_LE(told.quantile(1), 0.5);
    EXPECT_LT(told.quantile(0.5), modelled.quantile(0.5));
  }
  EXPECT_EQ(grids.size(), 2U);
}

}  // namespace
}  // namespace lockstep::compute_gemm_test
