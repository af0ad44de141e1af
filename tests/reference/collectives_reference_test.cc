#include <charconv>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/transfer_list.h"
#include "tests/support/reference.h"

namespace lockstep::collectives_reference_test {
namespace {

/// How often a flow of (source, destination, bytes) occurs.
using Flows = std::map<std::tuple<std::int32_t, std::int32_t, std::int64_t>, int>;

/// Node of the address 11.(i/256).(i%256).1, written in hexadecimal.
std::int32_t node_of(std::string_view address) {
  std::uint32_t value = 0;
  std::from_chars(address.data(), address.data() + address.size(), value, 16);
  return static_cast<std::int32_t>(value >> 8 & 0xffff);
}

/// The flows of a run of SimAI: source, destination, two ports, bytes, start, duration, ideal.
Flows reference_flows(const std::string& name) {
  Flows flows;
  const std::string text =
      testing::slurp(testing::reference_dir() + "/simai/" + name + "/fct.txt.gz");
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split_blanks(line);
    if (fields.size() == 8) {
      ++flows[{node_of(fields[0]), node_of(fields[1]), to_int(fields[4]).value()}];
    }
  }
  return flows;
}

/// One collective as often as given, in each group {first, first + stride, …} of `ranks` ranks.
struct Repeated {
  int times;
  CommType op;
  std::int64_t bytes;
  std::int32_t groups, first_step, ranks, stride;
};

/// Ranks sit on eight-GPU servers.
Flows our_flows(const std::vector<Repeated>& collectives) {
  Flows flows;
  for (const Repeated& c : collectives) {
    CollectiveRequest request;
    request.op = c.op;
    request.bytes = Bytes(c.bytes);
    request.flavour = CollectiveFlavour::kSimai;
    for (std::int32_t group = 0; group < c.groups; ++group) {
      const auto node = [&](std::int32_t rank) { return group * c.first_step + rank * c.stride; };
      std::vector<std::int32_t> servers;
      for (std::int32_t rank = 0; rank < c.ranks; ++rank) {
        servers.push_back(node(rank) / 8);
      }
      const Schedule schedule =
          choose_algorithm(c.op, c.ranks).build(request, group_shape(servers));
      for (const Transfer& t : write_out(schedule).transfers) {
        flows[{node(t.source), node(t.destination), t.bytes.count()}] += c.times;
      }
    }
  }
  return flows;
}

void expect_same(const std::string& name, const std::vector<Repeated>& collectives) {
  const Flows theirs = reference_flows(name);
  EXPECT_FALSE(theirs.empty()) << name;
  EXPECT_EQ(our_flows(collectives), theirs) << name;
}

constexpr std::int64_t kMi = 1 << 20;

TEST(SimaiFlows, OneAllReduce) {
  LOCKSTEP_NEEDS_REFERENCE();
  for (const std::int32_t ranks : {8, 16, 32}) {
    expect_same("ar_16M_" + std::to_string(ranks),
                {{1, CommType::kAllReduce, 16 * kMi, 1, 0, ranks, 1}});
  }
  expect_same("ar_128M_8", {{1, CommType::kAllReduce, 128 * kMi, 1, 0, 8, 1}});
  expect_same("ar_1G_8", {{1, CommType::kAllReduce, 1024 * kMi, 1, 0, 8, 1}});
}

TEST(SimaiFlows, TwoAllReduces) {
  LOCKSTEP_NEEDS_REFERENCE();
  expect_same("micro_8_lat3", {{1, CommType::kAllReduce, 16 * kMi, 1, 0, 8, 1},
                               {1, CommType::kAllReduce, 64 * kMi, 1, 0, 8, 1}});
}

// Two layers with sequence parallelism: 8 all-gathers and 8 reduce-scatters of 20 MiB, and the
// embedding's all-reduce, in every tensor-parallel group of eight.
std::vector<Repeated> two_layers(std::int32_t groups) {
  return {{1, CommType::kAllReduce, 20 * kMi, groups, 8, 8, 1},
          {8, CommType::kAllGather, 20 * kMi, groups, 8, 8, 1},
          {8, CommType::kReduceScatter, 20 * kMi, groups, 8, 8, 1}};
}

TEST(SimaiFlows, TwoLayersOnOneServer) {
  LOCKSTEP_NEEDS_REFERENCE();
  expect_same("llm2_8", two_layers(1));
}

// With data parallelism between servers: eight groups of one rank a server, hence one channel.
TEST(SimaiFlows, TwoLayersWithDataParallelism) {
  LOCKSTEP_NEEDS_REFERENCE();
  for (const std::int32_t servers : {2, 8}) {
    std::vector<Repeated> collectives = two_layers(servers);
    collectives.push_back({1, CommType::kAllGather, 150 * kMi, 8, 1, servers, 8});
    collectives.push_back({1, CommType::kReduceScatter, 300 * kMi, 8, 1, servers, 8});
    expect_same("llm2_" + std::to_string(8 * servers), collectives);
  }
}

}  // namespace
}  // namespace lockstep::collectives_reference_test
