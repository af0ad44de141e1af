// The packet engine in flavour simai against SimAI's own ns-3 runs: step time of rank 0 and of the
// last rank, and, where the run's record of transfers is at hand, every transfer. Source of the
// truth: key.txt ("all passes finished at", NOW_NS) and fct.txt.gz of each run.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "simulator/collectives/choose.h"
#include "simulator/network/packet_engine.h"
#include "simulator/network/packet_engine_simai_conf.h"
#include "simulator/replay/step_simulation.h"
#include "tests/support/reference.h"
#include "tests/support/run.h"
#include "topologies/topology_file.h"
#include "workloads/read_workload.h"

namespace lockstep::packet_vs_simai_test {
namespace {

std::string folder_of(const std::string& run) {
  return testing::reference_dir() + "/simai/" + run + "/";
}

PacketOptions options_of(const std::string& run, Time send_latency) {
  PacketOptions options = simai_packet_options();
  Warnings warnings;
  const std::string conf = folder_of(run) + "SimAI.conf";
  apply_simai_conf(testing::slurp(conf), conf, options, warnings);
  EXPECT_EQ(warnings.total(), 0) << run;
  options.lookahead = send_latency;
  options.program = std::string(LOCKSTEP_BINARY) + "-packet";
  return options;
}

StepResult simulate(const std::string& run, Time send_latency, const PacketOptions& options,
                    const CollectiveAlgorithm* algorithm = nullptr, bool relays = false) {
  const Workload workload = read_workload(folder_of(run) + "workload.txt");
  const Topology topology = read_topology(folder_of(run) + "topo");
  ScheduleCache schedules;
  StepOptions step;
  step.simai_flavour = true;
  step.all_gpus = true;
  step.send_latency = send_latency;
  return simulate_step(
      workload, topology, [&] { return std::make_unique<PacketEngine>(topology, options); },
      [&](CommType op, Bytes bytes, const GroupShape& shape) {
        return schedules.get(
            {.op = op, .bytes = bytes, .flavour = CollectiveFlavour::kSimai, .relays = relays},
            shape, algorithm);
      },
      step);
}

/// The number that follows `key` in the text.
double number_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  EXPECT_NE(at, std::string::npos) << key;
  return std::stod(text.substr(at + key.size()));
}

struct Truth {
  double rank0, last;  // us
};

Truth truth_of(const std::string& run) {
  const std::string key = testing::slurp(folder_of(run) + "key.txt");
  return {number_after(key, "all passes finished at time: ") / 1e3,
          number_after(key, "NOW_NS=") / 1e3};
}

struct Case {
  const char* name;
  const char* send_latency;
  double percent;  // largest deviation allowed
};

// Where all traffic stays in servers or on one rail, equal to the nanosecond. Where a small
// all-reduce crosses the spine on hashed paths, single ties between ACKs grow.
constexpr Case kCases[] = {
    {"ar_16M_8", "6us", 0.000001},
    {"ar_128M_8", "6us", 0.000001},
    {"ar_1G_8", "6us", 0.000001},
    {"micro_8_lat3", "3us", 0.000001},
    {"micro_8_latunset", "6ms", 0.000001},
    {"tut_ring_32_nv1440", "2us", 0.000001},
    {"micro_32_pxn", "2us", 0.000001},
    {"micro_128_A100_readme", "3us", 0.000001},
    {"llm2_8", "6us", 0.000001},
    {"llm2_16", "6us", 0.000001},
    {"llm2_64", "6us", 0.000001},
    {"cc7_ar_16M_16", "6us", 1},
    {"cc8_ar_16M_16", "6us", 1},
    {"ar_16M_16", "6us", 1},
    {"ar_16M_32", "6us", 1},
    {"ar_16M_64", "6us", 1},
    {"ar_16M_128", "6us", 1},
};

TEST(PacketAgainstSimai, StepTimes) {
  LOCKSTEP_NEEDS_REFERENCE();
  fmt::print("{:24} {:>12} {:>12} {:>8} {:>12} {:>12} {:>8}\n", "run", "SimAI us", "ours us", "%",
             "SimAI last", "ours last", "%");
  for (const Case& run : kCases) {
    const Time latency = parse_time(run.send_latency);
    const StepResult result = simulate(run.name, latency, options_of(run.name, latency));
    const Truth truth = truth_of(run.name);
    const double off0 = (result.total.us() / truth.rank0 - 1) * 100;
    const double off_last = (result.last_rank_end.us() / truth.last - 1) * 100;
    fmt::print("{:24} {:12.3f} {:12.3f} {:8.4f} {:12.3f} {:12.3f} {:8.4f}\n", run.name, truth.rank0,
               result.total.us(), off0, truth.last, result.last_rank_end.us(), off_last);
    EXPECT_LE(std::abs(off0), run.percent) << run.name;
    EXPECT_LE(std::abs(off_last), run.percent) << run.name;
  }
}

// NVLS: one server's matches but for 50 ns a part (simulator/collectives/nvls_simai.h); over two
// servers SimAI ends without a result, and here leaf switches add.
TEST(PacketAgainstSimai, ReductionInNvSwitches) {
  LOCKSTEP_NEEDS_REFERENCE();
  const CollectiveAlgorithm& nvls = algorithm_named("nvls", CommType::kAllReduce);
  const Time latency = Time::us(12);
  const char* run = "tut_nvls_32_nv1360";
  const StepResult result = simulate(run, latency, options_of(run, latency), &nvls);
  const Truth truth = truth_of(run);
  fmt::print("{}: SimAI {:.3f} us, ours {:.3f} us\n", run, truth.rank0, result.total.us());
  EXPECT_NEAR(result.total.us() / truth.rank0, 1, 0.0002);
  EXPECT_NEAR(result.last_rank_end.us() / truth.last, 1, 0.0002);

  const char* trap = "trap_nvls_tp16";
  const StepResult two = simulate(trap, Time::us(6), options_of(trap, Time::us(6)), &nvls);
  EXPECT_GT(two.exposed, Time());
}

/// Ends over some orders of simultaneous events must span SimAI's, which is one draw.
void expect_within_spread(const char* run, const std::vector<std::uint64_t>& seeds, bool relays) {
  const Time latency = Time::us(6);
  PacketOptions options = options_of(run, latency);
  options.fabric["TieOrder"] = "Random";
  double least = 1e300, most = 0, least_last = 1e300, most_last = 0;
  for (const std::uint64_t seed : seeds) {
    options.seed = seed;
    const StepResult result = simulate(run, latency, options, nullptr, relays);
    fmt::print("{}, tie order {}: rank 0 {:.1f} us, last {:.1f} us\n", run, options.seed,
               result.total.us(), result.last_rank_end.us());
    least = std::min(least, result.total.us());
    most = std::max(most, result.total.us());
    least_last = std::min(least_last, result.last_rank_end.us());
    most_last = std::max(most_last, result.last_rank_end.us());
  }
  const Truth truth = truth_of(run);
  fmt::print("SimAI: rank 0 {:.1f} us, last {:.1f} us\n", truth.rank0, truth.last);
  EXPECT_LE(least, truth.rank0);
  EXPECT_GE(most, truth.rank0);
  EXPECT_LE(least_last, truth.last);
  EXPECT_GE(most_last, truth.last);
}

// Large chunks that collide on hashed paths: which packet goes first when two come at once decides,
// and grows. Of 32 orders (seeds 1 to 10, 19 to 40) rank 0 ends at 1921 to 2271 us, 2021 us in the
// mean with a deviation of 83 us, the last rank at 2001 to 2438 us, 2165 us in the mean with a
// deviation of 99 us.
TEST(PacketAgainstSimai, CollidingChunksSpread) {
  LOCKSTEP_NEEDS_REFERENCE();
  expect_within_spread("ar_128M_64", {25, 34}, false);
}

// Trains stay within what the order of packets spans: over six orders (seeds 1 to 6) the last rank
// ends at 2051 to 2142 us, 2093 us in the mean; with packets at 2067 to 2229 us, 2122 us in the
// mean. (When trains took turns with each other they ended at 3.9 to 5.0 ms.)
TEST(PacketAgainstSimai, TrainsStayWithinTheSpread) {
  LOCKSTEP_NEEDS_REFERENCE();
  const Time latency = Time::us(6);
  PacketOptions options = options_of("ar_128M_64", latency);
  options.fabric["TieOrder"] = "Random";
  for (const char* train : {"4", "16"}) {
    options.fabric["Train"] = train;
    const StepResult result = simulate("ar_128M_64", latency, options);
    fmt::print("trains of {}: rank 0 {:.1f} us, last {:.1f} us\n", train, result.total.us(),
               result.last_rank_end.us());
    EXPECT_GT(result.last_rank_end.us(), 2001);
    EXPECT_LT(result.last_rank_end.us(), 2438);
  }
  options = options_of("llm2_64", latency);
  options.fabric["Train"] = "8";
  const StepResult steps = simulate("llm2_64", latency, options);
  EXPECT_NEAR(steps.last_rank_end.us() / truth_of("llm2_64").last, 1, 0.0003);
}

// By way of relays nothing collides, but what shares a port goes on together. Of 24 orders (seeds 1
// to 24) rank 0 ends at 1950 to 2128 us, 2016 us in the mean with a deviation of 52 us, the last
// rank at 1996 to 2151 us, 2090 us in the mean with a deviation of 34 us. (Before what comes ahead
// of its receive waited for that, no order was below 2123 and 2318 us.)
TEST(PacketAgainstSimai, RelaysSpread) {
  LOCKSTEP_NEEDS_REFERENCE();
  expect_within_spread("ar_128M_64_pxn", {4, 22}, true);
}

// Runs that crash SimAI (HPCC) or end without a result (a last packet that looks full).
TEST(PacketAgainstSimai, FinishesWhatSimaiDoesNot) {
  LOCKSTEP_NEEDS_REFERENCE();
  for (const char* run : {"trap_9000_8", "cc3_ar_16M_16"}) {
    const Time latency = Time::us(6);
    const StepResult result = simulate(run, latency, options_of(run, latency));
    EXPECT_GT(result.exposed, Time()) << run;
  }
}

/// Source, destination, bytes, start, duration of every transfer, sorted.
using Transfers =
    std::vector<std::tuple<std::int64_t, std::string, std::string, std::int64_t, std::int64_t>>;

Transfers read_transfers(const std::string& text) {
  Transfers transfers;
  for (const std::string_view line : split(text, '\n')) {
    const auto words = split_blanks(line);
    if (words.size() == 8) {
      transfers.emplace_back(to_int(words[5]).value(), words[0], words[1], to_int(words[4]).value(),
                             to_int(words[6]).value());
    }
  }
  std::ranges::sort(transfers);
  return transfers;
}

// Two servers: as long as no packets meet at a spine at one time, all is equal. (From 645,505 ns on
// two transfers there are told apart by whose packets went first.)
TEST(PacketAgainstSimai, FirstStepsOverServers) {
  LOCKSTEP_NEEDS_REFERENCE();
  const testing::ScratchFolder scratch;
  const char* run = "ar_16M_16";
  PacketOptions options = options_of(run, Time::us(6));
  options.fct_file = scratch / "fct";
  simulate(run, Time::us(6), options);
  const auto before = [](Transfers transfers) {
    std::erase_if(transfers, [](const auto& each) { return std::get<0>(each) >= 645'505; });
    return transfers;
  };
  const Transfers theirs = before(read_transfers(testing::slurp(folder_of(run) + "fct.txt.gz")));
  EXPECT_GT(theirs.size(), 1000U);
  EXPECT_EQ(before(read_transfers(testing::slurp(options.fct_file))), theirs);
}

TEST(PacketAgainstSimai, EveryTransferWhereNothingCollides) {
  LOCKSTEP_NEEDS_REFERENCE();
  const testing::ScratchFolder scratch;
  for (const auto& [run, send_latency] :
       {std::pair("llm2_8", "6us"), std::pair("micro_8_lat3", "3us"), std::pair("llm2_16", "6us"),
        std::pair("llm2_64", "6us")}) {
    const Time latency = parse_time(send_latency);
    PacketOptions options = options_of(run, latency);
    options.fct_file = (scratch / (std::string(run) + ".fct"));
    simulate(run, latency, options);
    const Transfers ours = read_transfers(testing::slurp(options.fct_file));
    const Transfers theirs = read_transfers(testing::slurp(folder_of(run) + "fct.txt.gz"));
    ASSERT_EQ(ours.size(), theirs.size()) << run;
    std::size_t equal = 0;
    std::int64_t worst = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      equal += ours[i] == theirs[i] ? 1U : 0U;
      worst = std::max(worst, std::abs(std::get<0>(ours[i]) + std::get<4>(ours[i]) -
                                       std::get<0>(theirs[i]) - std::get<4>(theirs[i])));
    }
    fmt::print("{}: {} of {} transfers equal to the nanosecond, ends at most {} ns apart\n", run,
               equal, ours.size(), worst);
    EXPECT_EQ(worst, 0) << run;
  }
}

}  // namespace
}  // namespace lockstep::packet_vs_simai_test
