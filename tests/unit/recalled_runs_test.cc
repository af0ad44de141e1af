// Collectives that are told from ones seen before, against a replay that simulates each of them.
// The network is the flow engine's: what is told does not depend on the engine.
#include "simulator/replay/recalled_runs.h"

#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/replay.h"
#include "tests/support/fabrics.h"

namespace lockstep::recalled_runs_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kServers = 4, kPerServer = 4, kRounds = 40;
constexpr Time kCompute = Time::us(100);

ProgramOp communication(CommType type, std::int64_t bytes, std::int32_t family,
                        std::int32_t stream) {
  ProgramOp op;
  op.comm = type;
  op.bytes = Bytes(bytes);
  op.family = family;
  op.stream = stream;
  return op;
}

/// Groups of the GPUs of a server, and of those at one place of all servers.
void add_families(RankPrograms& work) {
  std::vector<std::vector<std::int32_t>> inside(kServers), across(kPerServer);
  for (std::int32_t rank = 0; rank < kServers * kPerServer; ++rank) {
    inside[static_cast<std::size_t>(rank / kPerServer)].push_back(rank);
    across[static_cast<std::size_t>(rank % kPerServer)].push_back(rank);
  }
  work.families.emplace_back(GroupKind::kTp, inside, kServers * kPerServer);
  work.families.emplace_back(GroupKind::kDp, across, kServers * kPerServer);
}

/// All ranks: rounds of a computation, then an all-reduce in the server; beside it, on a stream of
/// its own, one across servers when `across` says so.
RankPrograms rounds(bool across) {
  RankPrograms work;
  Program program({StreamOrder::kProgram, StreamOrder::kProgram});
  std::int32_t before = -1;
  for (std::int32_t round = 0; round < kRounds; ++round) {
    ProgramOp compute;
    compute.compute = kCompute;
    const std::int32_t computed =
        before < 0 ? program.add(compute, {}) : program.add(compute, {{before}});
    before = program.add(communication(CommType::kAllReduce, 1 << 20, 0, 0), {{computed}});
    if (across) {
      program.add(communication(CommType::kAllGather, 1 << 20, 1, 1), {{computed}});
    }
  }
  program.finish();
  work.programs.push_back(std::move(program));
  work.program_of_rank.assign(kServers * kPerServer, 0);
  add_families(work);
  return work;
}

struct Outcome {
  ReplayResult replay;
  std::vector<PortUse> ports;
};

Outcome run(const RankPrograms& work, bool recall, ReplayOptions options = {},
            std::int32_t servers = kServers,
            CollectiveFlavour flavour = CollectiveFlavour::kDefault) {
  const Topology topology = testing::rail_optimised(servers, kPerServer, 4, 8);
  FlowEngine network(topology);
  ScheduleCache schedules;
  options.send_latency = Time::us(1);
  if (recall) {
    options.recall = RecallOptions{};
    options.recall->error_budget = servers == kServers ? 0.05 : 0.3;
    options.recall->ack = Bytes();  // the flow engine has none
  }
  Outcome outcome;
  outcome.replay = replay(
      work, topology.gpus(), topology, network,
      [&](CommType op, Bytes bytes, const GroupShape& shape) {
        return schedules.get({.op = op, .bytes = bytes, .flavour = flavour}, shape,
                             &algorithm_named("ring", op));
      },
      options);
  outcome.ports = network.port_use();
  return outcome;
}

// All ranks of a group enter at once, nobody else is on their ports: the same to the picosecond.
// Groups of a kind: 4 a round; simulated are the 1st, 2nd, 8th, … 128th of them: 7 of 160. The 3rd
// and 4th, which begin with the first two, follow the first.
TEST(RecalledRuns, EqualCollectivesAreTold) {
  const RankPrograms work = rounds(false);
  const Outcome full = run(work, false), told = run(work, true);
  EXPECT_EQ(told.replay.rank_end, full.replay.rank_end);
  EXPECT_EQ(told.replay.transfers, full.replay.transfers);
  EXPECT_EQ(told.replay.error, Time());
  EXPECT_EQ(told.replay.recalled * 160, full.replay.transfers * 153);
  for (std::size_t port = 0; port < full.ports.size(); ++port) {
    EXPECT_NEAR(static_cast<double>(told.ports[port].bytes.count() +
                                    told.replay.recalled_bytes[port].count()),
                static_cast<double>(full.ports[port].bytes.count()), 4096);
  }
}

// One rank is 2 us late in each round: the others wait before they send. Those that are early end
// earlier by at most that in the full run, and what that adds up to is told.
TEST(RecalledRuns, LateRankCostsWhatIsTold) {
  const RankPrograms work = rounds(false);
  ReplayOptions options;
  options.duration = [](std::int32_t rank, std::int32_t, const ProgramOp& op, Time) {
    return op.compute + (rank == 5 ? Time::us(2) : Time());
  };
  const Outcome full = run(work, false, options), told = run(work, true, options);
  EXPECT_GT(told.replay.error, Time());
  EXPECT_LE(told.replay.error, full.replay.end * 5 / 100 + Time::us(2));
  EXPECT_GT(told.replay.recalled, 0);
  for (std::size_t rank = 0; rank < full.replay.rank_end.size(); ++rank) {
    const Time a = told.replay.rank_end[rank], b = full.replay.rank_end[rank];
    EXPECT_LE(a > b ? a - b : b - a, told.replay.error) << rank;
  }
}

// Two kinds of groups at once; they share no port, NVLinks here and NICs there, so both are told.
TEST(RecalledRuns, GroupsApartDoNotMeet) {
  const RankPrograms work = rounds(true);
  const Outcome full = run(work, false), told = run(work, true);
  EXPECT_EQ(told.replay.error, Time());
  EXPECT_EQ(told.replay.rank_end, full.replay.rank_end);
  EXPECT_GT(told.replay.recalled, full.replay.transfers * 8 / 10);
}

// A port changes in mid-run: from then on everything is simulated.
TEST(RecalledRuns, ChangeOfALinkEndsIt) {
  const RankPrograms work = rounds(true);
  ReplayOptions options;
  options.changes = {{Time::us(1500), PortId(0), 0.5}};
  const Outcome full = run(work, false, options), told = run(work, true, options);
  EXPECT_GT(told.replay.recalled, 0);
  EXPECT_LT(told.replay.recalled, full.replay.transfers / 2);
  for (std::size_t rank = 0; rank < full.replay.rank_end.size(); ++rank) {
    const Time a = told.replay.rank_end[rank], b = full.replay.rank_end[rank];
    EXPECT_LE(a > b ? a - b : b - a, told.replay.error) << rank;
  }
}

// Four connections at 10 us a step: 100 further steps take 1 ms, for sure. One of them at 11 us:
// 10.25 us on average, and it falls behind by 0.75 us a step, 30 us so far.
TEST(SteadyPace, ByHand) {
  for (const bool slow : {false, true}) {
    SteadyPace pace(4, 96);
    for (std::int32_t step = 0; step < 40; ++step) {
      if (step == 23) {
        EXPECT_FALSE(pace.estimate(100));
      }
      for (std::int32_t connection = 0; connection < 4; ++connection) {
        const Time each = Time::us(slow && connection == 3 ? 11 : 10);
        EXPECT_EQ(pace.add(step, each * (step + 1)), connection == 3);
      }
      EXPECT_EQ(pace.made(), step + 1);
    }
    const auto estimate = pace.estimate(100);
    ASSERT_TRUE(estimate);
    EXPECT_EQ(estimate->time, slow ? Time::us(1025) : Time::us(1000));
    EXPECT_NEAR(estimate->error.us(), slow ? 75 + 30 * std::sqrt(140.0 / 40) : 0, 1e-3);
  }
}

// Each step takes 0.1 us longer than the one before, the j-th 10 us + 0.1 us j. Of 40 the blocks
// are five steps each, of 11.2 to 13.7 us: 12.45 us on average. If it goes on, the middle of 100
// further ones, 65 steps after that of the blocks, is 6.5 us slower.
TEST(SteadyPace, MayGoOnToChange) {
  SteadyPace pace(1, 160);
  for (std::int32_t step = 0; step < 40; ++step) {
    EXPECT_FALSE(pace.estimate(100));  // less than a quarter
    pace.add(step, Time::us(10) * step + Time::ns(50) * (step * (step + 1)));
  }
  const auto estimate = pace.estimate(100);
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->time, Time::us(1245));
  EXPECT_NEAR(estimate->error.us(), 100 * (2.57 * std::sqrt(4.375 / 5 / 6) + 6.5), 1e-3);
}

// A ring of 32 ranks makes 62 steps; its pace is known before they are over, and the rest is not
// simulated. All bytes are accounted for.
TEST(RecalledRuns, LongCollectiveIsCutShort) {
  RankPrograms work;
  Program program({StreamOrder::kProgram});
  program.add(communication(CommType::kAllReduce, 1 << 24, 0, 0), {});
  program.finish();
  work.programs.push_back(std::move(program));
  work.program_of_rank.assign(32, 0);
  std::vector<std::int32_t> all(32);
  std::iota(all.begin(), all.end(), 0);
  work.families.emplace_back(GroupKind::kWorld, std::vector<std::vector<std::int32_t>>{all}, 32);
  for (const CollectiveFlavour flavour : {CollectiveFlavour::kDefault, CollectiveFlavour::kSimai}) {
    const Outcome full = run(work, false, {}, 8, flavour), cut = run(work, true, {}, 8, flavour);
    EXPECT_EQ(cut.replay.transfers, full.replay.transfers);
    EXPECT_GT(cut.replay.recalled, 0);
    const Time a = cut.replay.end, b = full.replay.end;
    EXPECT_LE(a > b ? a - b : b - a, cut.replay.error + Time::us(1));
    EXPECT_LE(cut.replay.error, b * 30 / 100);
    std::int64_t bytes = 0, cut_bytes = 0;
    for (std::size_t port = 0; port < full.ports.size(); ++port) {
      bytes += full.ports[port].bytes.count();
      cut_bytes += cut.ports[port].bytes.count() + cut.replay.recalled_bytes[port].count();
    }
    EXPECT_NEAR(static_cast<double>(cut_bytes) / static_cast<double>(bytes), 1, 0.001);
  }
}

TEST(RecalledRuns, RanksThatDisagreeAreNamed) {
  RankPrograms work = rounds(false);
  Program other({StreamOrder::kProgram});
  other.add(communication(CommType::kAllReduce, 1 << 10, 0, 0), {});
  other.finish();
  work.programs.push_back(std::move(other));
  work.program_of_rank[2] = 1;
  EXPECT_THAT([&] { run(work, true); },
              ::testing::ThrowsMessage<Error>(HasSubstr("disagree about communication 1")));
}

TEST(RecalledRuns, RanksThatNeverComeAreNamed) {
  RankPrograms work = rounds(false);
  Program nothing({StreamOrder::kProgram});
  ProgramOp compute;
  compute.compute = kCompute;
  nothing.add(compute, {});
  nothing.finish();
  work.programs.push_back(std::move(nothing));
  work.program_of_rank[2] = 1;
  EXPECT_THAT([&] { run(work, true); },
              ::testing::ThrowsMessage<Error>(HasSubstr("waiting for rank 2 to enter it")));
}

}  // namespace
}  // namespace lockstep::recalled_runs_test
