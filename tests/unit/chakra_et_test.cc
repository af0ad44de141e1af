#include "workloads/chakra_et.h"

#include <cstdint>
#include <filesystem>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/free_network.h"
#include "tests/support/run.h"
#include "workloads/chakra_node.h"
#include "workloads/read_workload.h"

namespace lockstep::chakra_et_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Attribute {
  std::string name;
  std::int64_t number = 0;
  std::string text;
};

std::string message(const std::string& body) {
  std::string out;
  protozero::add_varint_to_buffer(&out, body.size());
  return out + body;
}

std::string node(std::uint64_t id, const std::string& name, std::int32_t type,
                 std::int64_t duration_us, const std::vector<std::uint64_t>& after,
                 const std::vector<Attribute>& attributes,
                 const std::vector<std::uint64_t>& callers = {}) {
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(1, id);
  writer.add_string(2, name);
  writer.add_int32(3, type);
  writer.add_packed_uint64(4, callers.begin(), callers.end());
  writer.add_packed_uint64(5, after.begin(), after.end());
  writer.add_uint64(7, static_cast<std::uint64_t>(duration_us));
  for (const Attribute& each : attributes) {
    protozero::pbf_writer attribute(writer, 10);
    attribute.add_string(1, each.name);
    if (each.text.empty()) {
      attribute.add_int64(9, each.number);
    } else {
      attribute.add_string(29, each.text);
    }
  }
  return message(body);
}

std::string metadata() {
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_string(1, "0.0.4");
  return message(body);
}

std::string compute(std::uint64_t id, std::int64_t us, const std::vector<std::uint64_t>& after) {
  return node(id, "gemm", 4, us, after, {});
}

/// A call on the host, of `callers`.
std::string call(std::uint64_t id, std::int64_t us, const std::vector<std::uint64_t>& after,
                 const std::vector<std::uint64_t>& callers) {
  return node(id, "aten::mul", 4, us, after, {{"is_cpu_op", 1, ""}}, callers);
}

std::string collective(std::uint64_t id, std::int64_t type, std::int64_t bytes,
                       const std::vector<std::uint64_t>& after, const std::string& group = "") {
  std::vector<Attribute> attributes{{"comm_type", type, ""}, {"comm_size", bytes, ""}};
  if (!group.empty()) {
    attributes.push_back({"pg_name", 0, group});
  }
  return node(id, "collective", 7, 0, after, attributes);
}

const Op& op_of(const Workload& workload, std::size_t program, std::size_t op) {
  return std::get<OpTable>(workload.jobs[0].work).programs[program].ops[op];
}

class ChakraEt : public ::testing::Test {
 protected:
  void write(int rank, const std::string& text) {
    write_file(scratch_ / ("job." + std::to_string(rank) + ".et"), text);
  }
  testing::ScratchFolder scratch_;
};

TEST(ChakraNodes, CollectivesByTheirNumber) {
  EXPECT_EQ(chakra_collective(7), CommType::kReduceScatter);
  EXPECT_EQ(chakra_collective(8), CommType::kReduceScatter);
  EXPECT_EQ(chakra_collective(9), CommType::kBarrier);
  EXPECT_EQ(chakra_collective(10), CommType::kNone);
}

/// A node with the attribute comm_size in a field of the value that `add` writes.
template <class Add>
std::optional<ChakraNode> sized(Add add) {
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(1, 1);
  {
    protozero::pbf_writer attribute(writer, 10);
    attribute.add_string(1, "comm_size");
    attribute.add_string(2, "what the network carries");
    add(attribute);
  }
  return parse_chakra_node(body);
}

TEST(ChakraNodes, NumbersOfAllForms) {
  using Writer = protozero::pbf_writer;
  const std::int64_t bytes = 1 << 26;
  const auto expect = [&](auto add) { EXPECT_EQ(sized(add).value().comm_bytes, bytes); };
  expect([&](Writer& w) { w.add_double(3, bytes); });
  expect([&](Writer& w) { w.add_float(5, bytes); });
  expect([&](Writer& w) { w.add_int32(7, bytes); });
  expect([&](Writer& w) { w.add_int64(9, bytes); });
  expect([&](Writer& w) { w.add_uint32(11, bytes); });
  expect([&](Writer& w) { w.add_uint64(13, bytes); });
  expect([&](Writer& w) { w.add_sint32(15, bytes); });
  expect([&](Writer& w) { w.add_sint64(17, bytes); });
  expect([&](Writer& w) { w.add_fixed32(19, bytes); });
  expect([&](Writer& w) { w.add_fixed64(21, bytes); });
  expect([&](Writer& w) { w.add_sfixed32(23, bytes); });
  expect([&](Writer& w) { w.add_sfixed64(25, bytes); });
  EXPECT_EQ(sized([](Writer& w) { w.add_sint64(17, -5); }).value().comm_bytes, -5);
  // What counts and is no number: the node is damaged.
  EXPECT_FALSE(sized([](Writer& w) { w.add_string(29, "64"); }));
  EXPECT_FALSE(sized([](Writer& w) { w.add_double(3, 1e300); }));
  EXPECT_FALSE(sized([](Writer& w) { w.add_fixed64(99, 1); }));
}

// Both ranks compute 5 us, all-gather, where each puts in 100 B, and rank 0 sends 7 B to rank 1.
TEST_F(ChakraEt, NodesBecomeOperations) {
  const std::string both = metadata() + compute(1, 5, {}) + collective(2, 2, 100, {1});
  write(0, both + node(3, "send", 5, 0, {2}, {{"comm_size", 7, ""}, {"comm_dst", 1, ""}}));
  write(1, both + node(3, "recv", 6, 0, {}, {{"comm_size", 7, ""}, {"comm_src", 0, ""}}));
  const Workload workload = read_workload(scratch_ / "job");
  EXPECT_EQ(workload, read_workload(scratch_ / ""));
  EXPECT_EQ(workload.jobs[0].name, "job");
  EXPECT_EQ(workload.jobs[0].parallel.gpus, 2);
  const OpTable& table = std::get<OpTable>(workload.jobs[0].work);
  ASSERT_EQ(table.programs.size(), 2U);
  EXPECT_EQ(op_of(workload, 0, 0).compute, Time::us(5));
  EXPECT_EQ(op_of(workload, 0, 1).comm, CommType::kAllGather);
  EXPECT_EQ(op_of(workload, 0, 1).bytes, Bytes(200));
  EXPECT_THAT(op_of(workload, 0, 1).after, ElementsAre(0));
  EXPECT_EQ(op_of(workload, 0, 2).peer, 1);
  EXPECT_TRUE(op_of(workload, 0, 2).send);
  EXPECT_EQ(op_of(workload, 1, 2).peer, 0);
  EXPECT_THAT(table.groups, ElementsAre(GroupFamily{"world", {{0, 1}}}));
}

// Node 1 depends on node 2, which stands behind it; ranks that do the same share a program.
TEST_F(ChakraEt, OrderFollowsDependenciesAndEqualRanksShare) {
  const std::string text =
      metadata() + compute(1, 1, {2}) + compute(2, 2, {}) + collective(3, 0, 64, {1});
  write(0, text);
  write(1, text);
  const Workload workload = read_workload(scratch_ / "job");
  ASSERT_EQ(std::get<OpTable>(workload.jobs[0].work).programs.size(), 1U);
  EXPECT_EQ(op_of(workload, 0, 0).compute, Time::us(2));
  EXPECT_THAT(op_of(workload, 0, 1).after, ElementsAre(0));
}

// Rank 1 computes 9 us before the all-reduce, rank 0 waits for it from 5 us on; what rank 0 then
// sends is there at once, and rank 1 computes 4 us more behind it: 9 + 4 us. Loads run beside
// computations, one after the other: 6 + 5 us, then 4 us that need them, 15 us.
TEST_F(ChakraEt, AStepTakesWhatItsDependenciesSay) {
  const auto set = [&](const std::string& loads) {
    write(0, metadata() + compute(1, 5, {}) + collective(2, 0, 64, {1}) +
                 node(3, "send", 5, 0, {2}, {{"comm_size", 7, ""}, {"comm_dst", 1, ""}}));
    write(1, metadata() + compute(1, 9, {}) + collective(2, 0, 64, {1}) +
                 node(3, "recv", 6, 0, {2}, {{"comm_size", 7, ""}, {"comm_src", 0, ""}}) + loads);
    return testing::simulate_free(read_workload(scratch_ / "job")).total;
  };
  EXPECT_EQ(set(compute(4, 4, {3})), Time::us(13));
  const std::string loads = node(4, "load", 2, 6, {}, {}) + node(5, "store", 3, 5, {}, {});
  EXPECT_EQ(set(loads + compute(6, 4, {3})), Time::us(13));
  EXPECT_EQ(set(loads + compute(6, 4, {3, 5})), Time::us(15));
}

TEST_F(ChakraEt, ProcessGroups) {
  for (int rank = 0; rank < 4; ++rank) {
    write(rank, metadata() + collective(1, 0, 64, {}, rank < 2 ? "a" : "b"));
  }
  const OpTable inferred = std::get<OpTable>(read_workload(scratch_ / "job").jobs[0].work);
  EXPECT_THAT(inferred.groups,
              ElementsAre(GroupFamily{"group a", {{0, 1}}}, GroupFamily{"group b", {{2, 3}}}));
  write_file(scratch_ / "comm_group.json", R"({"a": [0, 1], "b": [2, 3]})");
  EXPECT_EQ(std::get<OpTable>(read_workload(scratch_ / "job").jobs[0].work), inferred);
  write_file(scratch_ / "comm_group.json", R"({"a": [1, 0], "b": [2]})");
  EXPECT_THAT(error_of([&] { read_workload(scratch_ / "job"); }),
              HasSubstr("job.3.et: the rank is not in process group b"));
  write_file(scratch_ / "comm_group.json", R"({"a": [0, 9]})");
  EXPECT_THAT(error_of([&] { read_workload(scratch_ / "job"); }),
              HasSubstr("comm_group.json: a: 9 is no further rank"));
}

/// The operations' `after`, in their order.
std::vector<std::vector<std::int32_t>> waits_of(const std::string& nodes, Warnings& warnings) {
  std::vector<std::vector<std::int32_t>> waits;
  for (const Op& op : read_chakra_rank(metadata() + nodes, "f.0.et", &warnings).program.ops) {
    waits.push_back(op.after);
  }
  return waits;
}

using Told = std::vector<std::pair<std::string, std::int64_t>>;

Told told(const Warnings& warnings) {
  Told all;
  for (const Warnings::Entry& entry : warnings.entries()) {
    all.emplace_back(entry.text, entry.count);
  }
  return all;
}

const std::string kBesideData =
    "control dependencies of nodes that have data dependencies were passed over";
const std::string kCyclic = "control dependencies that are part of a cycle were passed over";
const std::string kTaken =
    "control dependencies of nodes without data dependencies: these wait for the others' end";

// A caller, 3, that needs what its callee, 1, gives: with both lists they would wait for each
// other. The callee's control dependency closes that cycle; the caller's own stands beside data.
TEST_F(ChakraEt, DataOrdersAndCallsDoNot) {
  Warnings warnings;
  const auto waits =
      waits_of(call(1, 2, {}, {3}) + call(2, 2, {1}, {3}) + call(3, 5, {1, 2}, {3}), warnings);
  EXPECT_THAT(waits, ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(0, 1)));
  EXPECT_EQ(told(warnings), (Told{{kBesideData, 2}, {kCyclic, 1}}));
}

// Node 1 calls itself, as a trace's first does; 2 and 3 have nothing else to wait for.
TEST_F(ChakraEt, CallersCountForNodesWithoutData) {
  Warnings warnings;
  const auto waits =
      waits_of(call(1, 2, {}, {1}) + call(2, 2, {}, {3, 88}) + call(3, 5, {}, {1}), warnings);
  EXPECT_THAT(waits, ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1)));
  EXPECT_EQ(told(warnings),
            (Told{{"dependencies on nodes that are not in the trace were passed over", 1},
                  {kCyclic, 1},
                  {kTaken, 2}}));
}

// Nodes 4 and 5 call each other; 6, which 5 calls, is in no cycle and waits for it.
TEST_F(ChakraEt, BehindACycleIsNotInIt) {
  Warnings warnings;
  const auto waits =
      waits_of(call(4, 1, {}, {5}) + call(5, 1, {}, {4}) + call(6, 1, {}, {5}), warnings);
  EXPECT_THAT(waits, ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(1)));
  EXPECT_EQ(told(warnings), (Told{{kCyclic, 2}, {kTaken, 1}}));
}

// The host's call of a collective takes its 3 us and says nothing of type or size; the kernel is
// the collective. A call that does say them is one, too, and that is told.
TEST_F(ChakraEt, CallsOfCollectivesAreTheHosts) {
  const auto host = [](std::uint64_t id, std::int32_t kind, std::vector<Attribute> more) {
    more.push_back({"is_cpu_op", 1, ""});
    return node(id, "c10d::allreduce_", kind, 3, {}, more);
  };
  Warnings warnings;
  const ChakraRank rank = read_chakra_rank(
      metadata() + host(1, 7, {}) + collective(2, 0, 64, {1}, "a") + host(3, 5, {}) +
          host(4, 7, {{"comm_type", 0, ""}, {"comm_size", 64, ""}, {"pg_name", 0, "b"}}),
      "f.0.et", &warnings);
  ASSERT_EQ(rank.program.ops.size(), 4U);
  for (const std::size_t i : {0U, 2U, 3U}) {
    EXPECT_EQ(rank.program.ops[i].comm, CommType::kNone);
    EXPECT_EQ(rank.program.ops[i].compute, Time::us(3));
    EXPECT_EQ(rank.program.ops[i].stream, 0);
  }
  EXPECT_EQ(rank.program.ops[1].comm, CommType::kAllReduce);
  EXPECT_THAT(rank.group, ElementsAre("", "a", "", ""));
  EXPECT_EQ(told(warnings),
            (Told{{"collectives of the host (is_cpu_op) are computations of their duration", 1}}));
}

TEST_F(ChakraEt, JsonFormsSayWhatTheyAre) {
  const std::string file = scratch_ / "job.0.json";
  write_file(file, R"({"workload_graph": [{"Id": 1, "Name": "aten::mul"}]})");
  EXPECT_THAT(error_of([&] { read_workload(file); }),
              AllOf(HasSubstr("job.0.json: this is an execution trace of one rank, in Chakra's"),
                    HasSubstr("NAME.0.et")));
  write_file(file, R"({"schema": "1.0.3-chakra.0.0.4", "pid": 7, "nodes": []})");
  EXPECT_THAT(error_of([&] { read_workload(file); }), HasSubstr("as PyTorch writes it"));
}

TEST_F(ChakraEt, ErrorsNameFileAndNode) {
  const auto error = [&](const std::string& text) {
    write(0, metadata() + text);
    return error_of([&] { read_workload(scratch_ / "job"); });
  };
  EXPECT_THAT(error(""), HasSubstr("job.0.et: there are no nodes"));
  EXPECT_THAT(error(compute(1, 1, {2}) + compute(2, 1, {1})),
              HasSubstr("node 1 (gemm): the node waits for itself"));
  EXPECT_THAT(error(compute(1, 1, {}) + compute(1, 1, {})), HasSubstr("two nodes have one id"));
  EXPECT_THAT(error(collective(4, 3, 8, {})),
              HasSubstr("node 4 (collective): there is no collective for comm_type 3"));
  EXPECT_THAT(error(node(1, "x", 7, 0, {}, {{"comm_type", 0, ""}})),
              HasSubstr("the communication has no size"));
  EXPECT_THAT(error(node(1, "x", 5, 0, {}, {{"comm_size", 8, ""}})), HasSubstr("comm_dst"));
  EXPECT_THAT(error(compute(1, 1, {}).substr(0, 5)), HasSubstr("cut off within a message"));
  write(0, metadata() + compute(1, 1, {}));
  write(2, metadata() + compute(1, 1, {}));
  EXPECT_THAT(error_of([&] { read_workload(scratch_ / "job"); }),
              HasSubstr("there is no trace of rank 1"));
}

TEST_F(ChakraEt, WarnsOfWhatItPassesOver) {
  Warnings warnings;
  const ChakraRank rank =
      read_chakra_rank(metadata() + compute(1, 0, {77}) + message("\x0A\xFF"), "f.0.et", &warnings);
  EXPECT_THAT(rank.program.ops[0].after, IsEmpty());
  EXPECT_EQ(warnings.total(), 3);
}

}  // namespace
}  // namespace lockstep::chakra_et_test
