#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "generator/compute/between_measured.h"
#include "generator/compute/compute_times.h"
#include "generator/compute/roofline.h"

namespace lockstep::compute_between_measured_test {
namespace {

Operator product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Operator op;
  op.kind = OperatorKind::kGemm;
  op.m = m;
  op.n = n;
  op.k = k;
  op.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return op;
}

Operator attention(std::int64_t batch, std::int64_t sequence, std::int64_t head) {
  Operator op;
  op.kind = OperatorKind::kAttention;
  op.batch = batch;
  op.heads = op.kv_heads = 8;
  op.queries = op.keys = sequence;
  op.head_dim = op.value_dim = head;
  const auto s = static_cast<double>(sequence);
  op.flops = 4.0 * 8 * s * s * static_cast<double>(batch * head);
  op.bytes = 4.0 * 8 * 2 * s * static_cast<double>(batch * head);
  return op;
}

Operator memory(double bytes) {
  Operator op;
  op.bytes = bytes;
  return op;
}

OperatorProfile profile(std::initializer_list<std::pair<Operator, Time>> measured) {
  OperatorProfile result;
  result.gpu = "H100";
  for (const auto& [op, time] : measured) {
    result.times[key_of(op, Precision::kBf16)] = {time, Time(), 1};
  }
  return result;
}

/// 1 ns for each row of a product, for each kilobyte, for each million of an attention's
/// operations.
Time by_formula(const Operator& op) {
  return op.kind == OperatorKind::kGemm        ? Time::ns(op.m)
         : op.kind == OperatorKind::kAttention ? Time::seconds(op.flops * 1e-15)
                                               : Time::seconds(op.bytes * 1e-12);
}

std::optional<Time> between(const OperatorProfile& measured, const Operator& op) {
  return between_measured(measured, op, Precision::kBf16, by_formula);
}

// Measured 2 times the formula at 1024 rows, 8 times at 4096: half way in the logarithm 4 times.
TEST(BetweenMeasured, TheFormulasErrorRunsStraightInTheLogarithms) {
  const OperatorProfile measured =
      profile({{product(1024, 64, 64), Time::ns(2048)}, {product(4096, 64, 64), Time::ns(32768)}});
  EXPECT_EQ(between(measured, product(2048, 64, 64)), Time::ns(8192));
  EXPECT_NEAR(between(measured, product(1025, 64, 64)).value().us(), 2.052, 0.003);
  EXPECT_NEAR(between(measured, product(4095, 64, 64)).value().us(), 32.754, 0.010);
}

TEST(BetweenMeasured, NothingBeyondWhatWasMeasured) {
  const OperatorProfile measured =
      profile({{product(1024, 64, 64), Time::us(2)}, {product(4096, 64, 64), Time::us(9)}});
  EXPECT_FALSE(between(measured, product(512, 64, 64)));
  EXPECT_FALSE(between(measured, product(4097, 64, 64)));
  EXPECT_FALSE(between(measured, product(2048, 65, 64)));  // two sizes differ
  EXPECT_FALSE(between({}, product(2048, 64, 64)));
  EXPECT_FALSE(between_measured(measured, product(2048, 64, 64), Precision::kFp16, by_formula));
  // More than four times apart, or a measurement that says nothing.
  EXPECT_FALSE(
      between(profile({{product(1000, 64, 64), Time::us(2)}, {product(4001, 64, 64), Time::us(9)}}),
              product(2048, 64, 64)));
  EXPECT_FALSE(
      between(profile({{product(1024, 64, 64), Time()}, {product(4096, 64, 64), Time::us(9)}}),
              product(2048, 64, 64)));
}

// Rows lie between 1024 and 4096, columns between 96 and 160: the columns are nearer.
TEST(BetweenMeasured, TheNarrowestBracketCounts) {
  const OperatorProfile measured = profile({{product(1024, 128, 64), Time::us(1)},
                                            {product(4096, 128, 64), Time::us(1)},
                                            {product(2048, 96, 64), Time::us(7)},
                                            {product(2048, 160, 64), Time::us(7)}});
  EXPECT_EQ(between(measured, product(2048, 128, 64)), Time::us(7));
}

// The formula's operations grow with the sequence's square, the measured times are three times
// those: so between them as well. The head's size is not interpolated.
TEST(BetweenMeasured, SequencesGrowTogether) {
  const auto three_times = [](const Operator& op) {
    return Time::seconds(3 * by_formula(op).seconds());
  };
  const Operator asked = attention(2, 3072, 128);
  const OperatorProfile measured =
      profile({{attention(2, 2048, 128), three_times(attention(2, 2048, 128))},
               {attention(2, 4096, 128), three_times(attention(2, 4096, 128))}});
  EXPECT_NEAR(between(measured, asked).value().us(), three_times(asked).us(), 0.001);
  Operator half_the_keys = asked;
  half_the_keys.keys /= 2;
  EXPECT_FALSE(between(measured, half_the_keys));
  EXPECT_FALSE(between(
      profile({{attention(2, 3072, 64), Time::us(5)}, {attention(2, 3072, 256), Time::us(5)}}),
      asked));
}

TEST(BetweenMeasured, MemoryByItsBytes) {
  const OperatorProfile measured =
      profile({{memory(1e6), Time::us(3)}, {memory(4e6), Time::us(12)}});
  EXPECT_EQ(between(measured, memory(2e6)), Time::us(6));
  EXPECT_FALSE(between(measured, memory(0)));
}

TEST(ComputeTimes, CountsWhatLiesBetween) {
  ComputeTimes times(
      gpu_spec("H100"), Precision::kBf16,
      std::make_shared<OperatorProfile>(
          profile({{product(1024, 64, 64), Time::us(50)}, {product(4096, 64, 64), Time::us(50)}})));
  const Time between_both = times(product(2048, 64, 64));
  EXPECT_GT(between_both, Time::us(40));
  EXPECT_LT(between_both, Time::us(60));
  EXPECT_EQ(times(product(2048, 64, 64)), between_both);
  times(product(1024, 64, 64));
  times(product(8192, 64, 64));
  EXPECT_EQ(times.counts(), (ComputeTimes::Counts{1, 2, 1}));
}

}  // namespace
}  // namespace lockstep::compute_between_measured_test
