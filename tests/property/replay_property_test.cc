#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/replay/exposure.h"
#include "simulator/replay/parallel_groups.h"
#include "simulator/replay/replay.h"
#include "tests/support/fake_network.h"
#include "tests/support/sanitized.h"

namespace lockstep::replay_property_test {
namespace {

std::shared_ptr<const Schedule> one_lap(CommType op, Bytes bytes, const GroupShape& shape) {
  auto schedule = std::make_shared<Schedule>();
  schedule->op = op;
  schedule->ranks = shape.ranks;
  schedule->chunk_bytes = bytes;
  for (std::int32_t i = 0; i < shape.ranks; ++i) {
    schedule->add({.source = i, .destination = (i + 1) % shape.ranks}, {});
  }
  return schedule;
}

/// A program that all ranks share, remembered together with what each operation waits for.
struct RandomWork {
  RankPrograms work;
  std::vector<std::vector<std::int32_t>> after;
};

RandomWork random_work(Rng& rng) {
  constexpr std::int32_t kStreams = 3;
  RandomWork random;
  const auto groups = static_cast<std::int32_t>(rng.between(1, 3));
  const auto size = static_cast<std::int32_t>(rng.between(1, 4));
  std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(groups));
  for (std::int32_t rank = 0; rank < groups * size; ++rank) {
    members[static_cast<std::size_t>(rank % groups)].push_back(rank);
  }
  random.work.families.emplace_back(GroupKind::kDp, std::move(members), groups * size);
  Program program(std::vector<StreamOrder>(kStreams, StreamOrder::kProgram));
  const std::int64_t count = rng.between(1, 40);
  for (std::int32_t i = 0; i < count; ++i) {
    ProgramOp op;
    op.stream = static_cast<std::int32_t>(rng.below(kStreams));
    op.compute = Time::ns(rng.between(0, 5000));
    if (op.stream != 0) {
      op.comm = CommType::kAllGather;
      op.family = 0;
      op.bytes = Bytes(rng.between(0, 3000));
    }
    std::vector<std::int32_t>& after = random.after.emplace_back();
    for (std::int64_t k = rng.between(0, 2); k > 0 && i > 0; --k) {
      after.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(i))));
    }
    program.add(op, after);
  }
  program.finish();
  random.work.programs.push_back(std::move(program));
  random.work.program_of_rank.assign(static_cast<std::size_t>(groups * size), 0);
  return random;
}

using Log = std::map<std::pair<std::int32_t, std::int32_t>, OpTiming>;

ReplayResult run(const RankPrograms& work, Log& log) {
  Topology topology;
  topology.nodes.resize(static_cast<std::size_t>(work.ranks()));
  testing::FakeNetwork network;
  ReplayOptions options;
  options.send_latency = Time::ns(700);
  options.traced = [](std::int32_t) { return true; };
  options.on_op = [&](std::int32_t rank, std::int32_t op, const OpTiming& timing) {
    log[{rank, op}] = timing;
  };
  return replay(work, topology.gpus(), topology, network, one_lap, options);
}

TEST(ReplayProperty, OrderAndStreamsAreKept) {
  Rng rng(1, "replay order");
  for (int round = 0; round < testing::cases_of(300); ++round) {
    const RandomWork random = random_work(rng);
    Log log;
    const ReplayResult result = run(random.work, log);
    const Program& program = random.work.programs[0];
    ASSERT_EQ(log.size(), program.ops().size() * random.work.program_of_rank.size());
    Time end;
    for (const auto& [where, timing] : log) {
      const auto [rank, op] = where;
      end = std::max(end, timing.end);
      EXPECT_LE(timing.ready, timing.begin);
      EXPECT_LE(timing.begin, timing.end);
      for (const std::int32_t earlier : random.after[static_cast<std::size_t>(op)]) {
        EXPECT_LE((log[{rank, earlier}].end), timing.ready);
      }
    }
    EXPECT_EQ(result.end, end);
    for (std::int32_t stream = 0; stream < 3; ++stream) {
      const auto ops = program.stream_ops(stream);
      for (std::size_t i = 1; i < ops.size(); ++i) {
        EXPECT_LE((log[{0, ops[i - 1]}].end), (log[{0, ops[i]}].begin));
      }
    }
  }
}

TEST(ReplayProperty, SameWorkSameTimes) {
  Rng rng(2, "replay twice");
  for (int round = 0; round < testing::cases_of(50); ++round) {
    const RandomWork random = random_work(rng);
    Log first, second;
    EXPECT_EQ(run(random.work, first).rank_end, run(random.work, second).rank_end);
  }
}

TEST(ReplayProperty, ExposureSplitsTheWholeStep) {
  Rng rng(3, "replay exposure");
  for (int round = 0; round < testing::cases_of(300); ++round) {
    const RandomWork random = random_work(rng);
    Log log;
    const ReplayResult result = run(random.work, log);
    const Exposure exposure =
        exposure_of(random.work.programs[0], random.work.families, result.first_rank);
    EXPECT_EQ(exposure.compute + exposure.exposed + exposure.bubble, result.rank_end[0]);
    Time by_group = exposure.idle;
    for (const Time time : exposure.by_group) {
      by_group += time;
    }
    EXPECT_EQ(by_group, exposure.exposed);
  }
}

TEST(ParallelGroupsProperty, EveryRankIsInOneGroupOfEachKind) {
  Rng rng(4, "parallel groups");
  for (int round = 0; round < testing::cases_of(300); ++round) {
    Parallelism parallel;
    parallel.tp = rng.between(1, 6);
    parallel.pp = rng.between(1, 4);
    parallel.ep = rng.between(1, 4);
    parallel.gpus = parallel.tp * parallel.pp * parallel.ep * rng.between(1, 5);
    const std::int64_t d = parallel.gpus / (parallel.tp * parallel.pp);
    const std::map<GroupKind, std::int64_t> sizes{
        {GroupKind::kTp, parallel.tp},     {GroupKind::kDp, d},
        {GroupKind::kEp, parallel.ep},     {GroupKind::kDpEp, d / parallel.ep},
        {GroupKind::kPp, parallel.pp},     {GroupKind::kCp, 1},
        {GroupKind::kWorld, parallel.gpus}};
    const auto families = parallel_groups(parallel);
    ASSERT_EQ(families.size(), sizes.size());
    for (const CommFamily& family : families) {
      std::int64_t ranks = 0;
      for (const auto& group : family.groups()) {
        EXPECT_EQ(std::ssize(group), sizes.at(family.kind()));
        EXPECT_TRUE(std::ranges::is_sorted(group));
        ranks += std::ssize(group);
      }
      EXPECT_EQ(ranks, parallel.gpus);
      for (std::int32_t rank = 0; rank < parallel.gpus; ++rank) {
        EXPECT_GE(family.group_of(rank), 0);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::replay_property_test
