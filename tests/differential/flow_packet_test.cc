// The flow engine against the packet engine: the same schedules, routes and packet sizes, so the
// difference is what a fluid leaves out (packets in turn, windows, queues, congestion control).
// Prints the table of docs/models.md; LOCKSTEP_ACCURACY_CASES=200 that of all its cases, and
// LOCKSTEP_ACCURACY_ROWS=0.05 each case with an error above 5 %.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
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

/// Sizes of errors by sharing alone and with the transport, and how far runs of the packet engine
/// that differ in their seed lie apart.
struct Errors {
  std::vector<double> sharing, transport, scatter;

  void add(const Errors& other) {
    sharing.insert(sharing.end(), other.sharing.begin(), other.sharing.end());
    transport.insert(transport.end(), other.transport.begin(), other.transport.end());
    scatter.insert(scatter.end(), other.scatter.begin(), other.scatter.end());
  }
  static double at(std::vector<double>& values, double share) {
    std::ranges::sort(values);
    return values.empty()
               ? 0
               : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }
  void print(const char* name) {
    fmt::print("| {} | {} |", name, sharing.size());
    for (auto* values : {&sharing, &transport}) {
      fmt::print(" {:.2f} % | {:.2f} % | {:.2f} % |", 100 * at(*values, 0.5),
                 100 * at(*values, 0.95), 100 * at(*values, 1));
    }
    fmt::print(" {:.2f} %, {:.2f} % |\n", 100 * at(scatter, 0.5), 100 * at(scatter, 1));
  }
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Means over seeds, which draw the ECN marks.
void score(const AccuracyCase& drawn, PacketOptions packet, Errors& errors) {
  constexpr int kSeeds = 3;
  const double least = setting("LOCKSTEP_ACCURACY_ROWS", 10);
  std::vector<double> packets, fluids;
  for (int i = 0; i < kSeeds; ++i) {
    packet.seed = drawn.seed + static_cast<std::uint64_t>(i);
    packets.push_back(time_by_packets(drawn, packet).us());
    fluids.push_back(time_by_flow(drawn, &packet).us());
  }
  const double sharing = time_by_flow(drawn, nullptr).us();
  const auto [low, high] = std::ranges::minmax(packets);
  errors.sharing.push_back(std::abs(sharing / mean(packets) - 1));
  errors.transport.push_back(std::abs(mean(fluids) / mean(packets) - 1));
  errors.scatter.push_back((high - low) / mean(packets));
  if (std::max(errors.sharing.back(), errors.transport.back()) > least) {
    fmt::print("{}: sharing {:.2f} us, transport {:.2f} us, packets {:.2f} to {:.2f} us\n",
               drawn.name, sharing, mean(fluids), low, high);
  }
}

TEST(FlowAgainstPacket, RandomCollectives) {
  const int cases = static_cast<int>(setting("LOCKSTEP_ACCURACY_CASES", 100));
  constexpr int kDraws = 5;  // seeds of the cases
  Errors free, sprayed, colliding;
  std::vector<Rng> rngs;
  for (int i = 0; i < kDraws; ++i) {
    rngs.emplace_back(static_cast<std::uint64_t>(i + 1), "flow against packet");
  }
  for (int i = 0; i < cases; ++i) {
    const AccuracyCase drawn = draw_case(rngs[static_cast<std::size_t>(i % kDraws)]);
    score(drawn, {},
          drawn.ways == AccuracyCase::Ways::kFree      ? free
          : drawn.ways == AccuracyCase::Ways::kSprayed ? sprayed
                                                       : colliding);
  }
  fmt::print(
      "| ways | cases | sharing: median | 95 % | worst | transport: median | 95 % | worst | "
      "packets over seeds: median, worst |\n");
  free.print("free of collisions");
  sprayed.print("sprayed");
  Errors both = free;
  both.add(sprayed);
  both.print("these two");
  colliding.print("colliding");
  EXPECT_LE(Errors::at(both.sharing, 0.5), 0.02);
  EXPECT_LE(Errors::at(both.sharing, 0.95), 0.08);  // without what the packet engine has on
  EXPECT_LE(Errors::at(both.transport, 0.5), 0.02);
  EXPECT_LE(Errors::at(both.transport, 0.95), 0.06);
  EXPECT_LE(Errors::at(sprayed.transport, 0.95), 0.06);
  EXPECT_LE(Errors::at(colliding.transport, 0.5), 0.03);
}

TEST(PacketsThatAreMarkedAtRandom, SkippingChangesNothing) {
  Rng rng(1, "flow against packet");
  for (int i = 0; i < 40; ++i) {
    const AccuracyCase drawn = draw_case(rng);
    PacketOptions skipping, full;
    full.fabric["FastForward"] = "false";
    EXPECT_EQ(time_by_packets(drawn, skipping), time_by_packets(drawn, full)) << drawn.name;
  }
}

}  // namespace
}  // namespace lockstep::testing
