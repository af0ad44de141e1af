// Closed forms on a fabric without contention: one GPU a server, one switch that never blocks, no
// headers. A transfer of m bytes takes T(m) = a + m / B, with a the latency of an empty one and
// B = 400 Gbps, 20 ps a byte, so that all times are whole picoseconds and the forms are exact.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/lone_collective.h"
#include "topologies/topology_file.h"

namespace lockstep::closed_forms_test {
namespace {

constexpr std::int64_t kPsPerByte = 20;

class ClosedForms : public ::testing::TestWithParam<std::int32_t> {
 protected:
  ClosedForms()
      : n_(GetParam()),
        topology_(topology_from("single-switch:g=" + std::to_string(n_) + ",gps=1,nsps=0")) {
    flow_.header = Bytes(0);
    flow_.payload = Bytes(1);
  }

  /// By the replay, and by the path for collectives alone; the two must agree.
  Time run(std::string_view name, const CollectiveRequest& request) {
    LoneCollective collective;
    collective.nodes = topology_.gpus();
    collective.nodes.resize(static_cast<std::size_t>(name == "send" ? 2 : n_));
    const GroupShape shape = shape_of_nodes(topology_, collective.nodes);
    collective.schedule = std::make_shared<const Schedule>(
        build_schedule(algorithm_named(name, request.op), request, shape));
    collective.bytes = request.bytes;
    collective.send_latency = Time::us(2);
    FlowEngine network(topology_, flow_);
    const Time end = run_lone_collective(collective, topology_, network).end;
    EXPECT_EQ(run_on_flow_engine(collective, topology_, flow_, {}).end, end) << name;
    return end;
  }
  Time run(std::string_view name, CommType op, std::int64_t bytes) {
    CollectiveRequest request;
    request.op = op;
    request.bytes = Bytes(bytes);
    request.channels = 1;
    return run(name, request);
  }
  /// a: what a send takes beyond its bytes.
  Time latency() { return run("send", CommType::kSendRecv, 1000) - Time::ps(1000 * kPsPerByte); }
  Time form(std::int64_t latencies, std::int64_t bytes) {
    return latency() * latencies + Time::ps(bytes * kPsPerByte);
  }
  std::int64_t rounds() const {
    return std::bit_width(static_cast<std::uint32_t>(n_ - 1));  // ceil(log2 n)
  }

  std::int64_t n_;
  Topology topology_;
  FlowOptions flow_;
};

TEST_P(ClosedForms, Ring) {
  const std::int64_t chunk = 100'000, s = chunk * n_;
  EXPECT_EQ(run("ring", CommType::kAllReduce, s), form(2 * (n_ - 1), 2 * (n_ - 1) * chunk));
  EXPECT_EQ(run("ring", CommType::kAllGather, s), form(n_ - 1, (n_ - 1) * chunk));
  EXPECT_EQ(run("ring", CommType::kReduceScatter, s), form(n_ - 1, (n_ - 1) * chunk));
}

// Two slices hide the latency behind each other: a step takes the longer of a slice's whole way,
// a + m/2B, and both slices' time on the wire, m/B. Here m/2B is above a.
TEST_P(ClosedForms, SlicedRing) {
  CollectiveRequest request;
  request.op = CommType::kAllGather;
  request.channels = 1;
  request.slices = 2;
  const std::int64_t chunk = 1'000'000;
  request.bytes = Bytes(chunk * n_);
  EXPECT_EQ(run("ring", request), form(1, (n_ - 1) * chunk));
}

// The NIC carries (n-1) pieces; all start at once. A share of its rate need not be whole.
TEST_P(ClosedForms, AllToAll) {
  const std::int64_t piece = 100'000'000;
  const Time due = form(1, (n_ - 1) * piece);
  const Time off = run("direct", CommType::kAllToAll, piece * n_) - due;
  EXPECT_LE(std::abs(off.count_ps()), 1e-9 * static_cast<double>(due.count_ps()));
}

// Bruck's all-gather: rounds of 1, 2, 4, … shards, the last with the rest.
TEST_P(ClosedForms, Bruck) {
  const std::int64_t shard = 100'000;
  EXPECT_EQ(run("bruck", CommType::kAllGather, shard * n_), form(rounds(), (n_ - 1) * shard));
}

// PAT moves as much, in as many rounds, the other way round.
TEST_P(ClosedForms, Pat) {
  const std::int64_t shard = 100'000;
  const Time time = run("pat", CommType::kAllGather, shard * n_);
  if (std::has_single_bit(static_cast<std::uint32_t>(n_))) {
    EXPECT_EQ(time, form(rounds(), (n_ - 1) * shard));
  } else {
    EXPECT_GE(time, form(rounds(), (n_ - 1) * shard));
  }
}

// Recursive halving and doubling: log2 p rounds each, S/2 + S/4 + … bytes each, among the largest
// power of two p of the ranks. Each of the others gives a partner all of S before and gets all of
// it after.
TEST_P(ClosedForms, RecursiveHalvingDoubling) {
  const std::int64_t s = 100'800 * n_;
  const auto p = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint32_t>(n_)));
  EXPECT_EQ(run("recursive-halving-doubling", CommType::kAllReduce, s),
            form(2 * rounds(), 2 * (s - s / p) + (p == n_ ? 0 : 2 * s)));
}

// A reduce-scatter and an all-gather of unequal ranges, round by round, as MPI_Sendrecv: a pair
// begins a round when both have done theirs before, and ends it with the longer of its two
// messages.
TEST_P(ClosedForms, RecursiveHalvingDoublingOfShards) {
  const auto n = static_cast<std::size_t>(n_);
  const std::size_t p = std::bit_floor(n), paired = n - p;
  const std::int64_t shard = 100'000;
  const auto rank = [&](std::size_t i) { return i < paired ? 2 * i + 1 : i + paired; };
  const auto shards = [&](std::size_t begin, std::size_t count) {  // of active ranks
    return static_cast<std::int64_t>(count +
                                     (begin < paired ? std::min(count, paired - begin) : 0));
  };
  for (const bool scatter : {true, false}) {
    std::vector<Time> done(n);
    const auto give = [&](std::size_t from, std::size_t to, std::int64_t all) {
      done[from] = done[to] = std::max(done[from], done[to]) + form(1, all * shard);
    };
    for (std::size_t pair = 0; pair < paired; ++pair) {
      give(2 * pair, 2 * pair + 1, scatter ? n_ : 1);
    }
    for (std::size_t round = 1; round < p; round *= 2) {
      const std::size_t distance = scatter ? p / 2 / round : round;
      for (std::size_t i = 0; i < p; ++i) {
        const std::size_t j = i ^ distance;
        if (i < j) {
          give(rank(i), rank(j),
               std::max(shards(i / distance * distance, distance),
                        shards(j / distance * distance, distance)));
        }
      }
    }
    for (std::size_t pair = 0; pair < paired; ++pair) {
      give(2 * pair + 1, 2 * pair, scatter ? 1 : n_);
    }
    EXPECT_EQ(run("recursive-halving-doubling",
                  scatter ? CommType::kReduceScatter : CommType::kAllGather, shard * n_),
              *std::ranges::max_element(done));
  }
}

// A pipeline of p pieces over n-1 hops: the first piece's way, then the others one by one.
TEST_P(ClosedForms, Chain) {
  const std::int64_t piece = 524'288, pieces = 16;
  EXPECT_EQ(run("chain", CommType::kBroadcast, piece * pieces),
            form(n_ - 1, (n_ - 1 + pieces - 1) * piece));
  EXPECT_EQ(run("chain", CommType::kReduce, piece * pieces),
            form(n_ - 1, (n_ - 1 + pieces - 1) * piece));
}

TEST_P(ClosedForms, Barrier) {
  EXPECT_EQ(run("dissemination", CommType::kBarrier, 0), form(rounds(), rounds()));
}

// One tree over servers of one GPU: one piece goes up and down again. A rank has added when all its
// children's pieces have come. Two that begin at b <= c share its port from c on if the first has
// not left by then; together they keep the port busy, so the last has left at
//
//     max(b + 2 S / B, c + S / B)
//
// On the way down a rank sends to its k children at once, so each has the piece a + k S / B later.
TEST_P(ClosedForms, Tree) {
  CollectiveRequest request;
  request.op = CommType::kAllReduce;
  request.bytes = Bytes(100'000);
  request.channels = 1;
  const Schedule schedule = build_schedule(algorithm_named("tree", request.op), request,
                                           shape_of_nodes(topology_, topology_.gpus()));
  std::vector<std::vector<std::int32_t>> children(static_cast<std::size_t>(n_));
  std::vector<char> has_parent(static_cast<std::size_t>(n_));
  for (const Slot& slot : schedule.slots) {
    ASSERT_EQ(slot.count, 1);
    if (slot.reduces == 0) {  // down
      children[static_cast<std::size_t>(slot.source)].push_back(slot.destination);
      has_parent[static_cast<std::size_t>(slot.destination)] = 1;
    }
  }
  const Time wire = Time::ps(request.bytes.count() * kPsPerByte);
  const std::function<Time(std::size_t)> added = [&](std::size_t rank) {
    std::vector<Time> begin;
    for (const std::int32_t child : children[rank]) {
      begin.push_back(added(static_cast<std::size_t>(child)));
    }
    std::ranges::sort(begin);
    EXPECT_LE(begin.size(), 2U);
    Time last;
    for (std::size_t i = 0; i < begin.size(); ++i) {
      const auto sharing = static_cast<std::int64_t>(begin.size() - i);
      last = std::max(last, latency() + begin[i] + wire * sharing);
    }
    return last;
  };
  const std::function<Time(std::size_t)> down = [&](std::size_t rank) {
    Time longest;
    for (const std::int32_t child : children[rank]) {
      const Time step = latency() + wire * std::ssize(children[rank]);
      longest = std::max(longest, step + down(static_cast<std::size_t>(child)));
    }
    return longest;
  };
  const auto root = static_cast<std::size_t>(std::ranges::find(has_parent, 0) - has_parent.begin());
  EXPECT_EQ(run("tree", request), added(root) + down(root));
}

// A broadcast of one piece down a tree: a rank sends to its c children at once, so each has it
// a + c S / B after the rank itself, and the last of all when the slowest path is through.
TEST_P(ClosedForms, TreeBroadcast) {
  CollectiveRequest request;
  request.op = CommType::kBroadcast;
  request.bytes = Bytes(100'000);
  request.channels = 1;
  std::vector<NodeId> nodes = topology_.gpus();
  const Schedule schedule = build_schedule(algorithm_named("tree", request.op), request,
                                           shape_of_nodes(topology_, nodes));
  std::vector<std::vector<std::int32_t>> children(nodes.size());
  for (const Slot& slot : schedule.slots) {
    ASSERT_EQ(slot.count, 1);
    children[static_cast<std::size_t>(slot.source)].push_back(slot.destination);
  }
  ASSERT_EQ(std::ssize(schedule.slots), n_ - 1);  // a tree
  std::int64_t most = 0;
  const std::function<Time(std::int32_t)> down = [&](std::int32_t rank) {
    const auto& below = children[static_cast<std::size_t>(rank)];
    most = std::max<std::int64_t>(most, std::ssize(below));
    Time longest;
    for (const std::int32_t child : below) {
      longest = std::max(longest, form(1, std::ssize(below) * request.bytes.count()) + down(child));
    }
    return longest;
  };
  EXPECT_EQ(run("tree", request), down(request.root));
  EXPECT_LE(most, 2);
  EXPECT_EQ(most, n_ <= 4 ? 1 : 2);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ClosedForms, ::testing::Values(2, 3, 4, 7, 8, 16),
                         [](const auto& param) { return "n" + std::to_string(param.param); });

}  // namespace
}  // namespace lockstep::closed_forms_test
