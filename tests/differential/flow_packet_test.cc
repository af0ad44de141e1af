// The flow engine against the packet engine: the same schedules, routes and packet sizes, so the
// difference is what a fluid leaves out (packets in turn, windows, queues, congestion control).
// Prints the table of docs/models.md; LOCKSTEP_ACCURACY_CASES=200 that of all its cases, and
// LOCKSTEP_ACCURACY_ROWS=0.05 each case with an error above 5 %.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/differential/accuracy_case.h"
#include "tests/support/run.h"

namespace lockstep::testing {
namespace {

double setting(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : to_double(text).value_or(otherwise);
}

/// Sizes of errors, and how far runs of one case that differ in their seed lie apart.
struct Errors {
  std::vector<double> size, scatter;

  static double at(std::vector<double>& values, double share) {
    std::ranges::sort(values);
    return values.empty()
               ? 0
               : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }
  void print(const char* name) {
    fmt::print("| {:18} | {:4} | {:5.2f} % | {:5.2f} % | {:5.2f} % | {:5.2f} %, {:5.2f} % |\n",
               name, size.size(), 100 * at(size, 0.5), 100 * at(size, 0.95), 100 * at(size, 1),
               100 * at(scatter, 0.5), 100 * at(scatter, 1));
  }
};

/// Against the mean over seeds, which draw the ECN marks. Without marks one run says all.
void score(const AccuracyCase& drawn, Errors& errors) {
  constexpr int kSeeds = 3;
  const double least = setting("LOCKSTEP_ACCURACY_ROWS", 1);
  std::vector<double> times;
  for (int i = 0; i < (drawn.ways == AccuracyCase::Ways::kFree ? 1 : kSeeds); ++i) {
    PacketOptions packet;
    packet.seed = drawn.seed + static_cast<std::uint64_t>(i);
    times.push_back(time_by_packets(drawn, packet).us());
  }
  double mean = 0;
  for (const double time : times) {
    mean += time / static_cast<double>(times.size());
  }
  const double by_flow = time_by_flow(drawn).us();
  const double error = by_flow / mean - 1;
  const auto [low, high] = std::ranges::minmax(times);
  errors.size.push_back(std::abs(error));
  errors.scatter.push_back((high - low) / mean);
  if (std::abs(error) > least) {
    fmt::print("{}: flow {:.2f} us, packets {:.2f} to {:.2f} us, {:+.1f} %\n", drawn.name, by_flow,
               low, high, 100 * error);
  }
}

TEST(FlowAgainstPacket, RandomCollectives) {
  const int cases = static_cast<int>(setting("LOCKSTEP_ACCURACY_CASES", 100));
  Rng rng(1, "flow against packet");
  Errors free, sprayed, colliding;
  for (int i = 0; i < cases; ++i) {
    const AccuracyCase drawn = draw_case(rng);
    score(drawn, drawn.ways == AccuracyCase::Ways::kFree      ? free
                 : drawn.ways == AccuracyCase::Ways::kSprayed ? sprayed
                                                              : colliding);
  }
  fmt::print("| ways | cases | median | 95 % | worst | packets over seeds: median, worst |\n");
  free.print("free of collisions");
  sprayed.print("sprayed");
  Errors both = free;
  both.size.insert(both.size.end(), sprayed.size.begin(), sprayed.size.end());
  both.scatter.insert(both.scatter.end(), sprayed.scatter.begin(), sprayed.scatter.end());
  both.print("these two");
  colliding.print("colliding");
  EXPECT_LE(Errors::at(both.size, 0.5), 0.02);
  EXPECT_LE(Errors::at(both.size, 0.95), 0.06);
  EXPECT_LE(Errors::at(colliding.size, 0.5), 0.03);
}

}  // namespace
}  // namespace lockstep::testing
