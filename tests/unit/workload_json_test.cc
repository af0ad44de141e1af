#include "workloads/workload_json.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/reference.h"
#include "workloads/describe.h"

namespace lockstep::workload_json_test {
namespace {

/// Two ranks that reduce together, then the first sends to the second.
const std::string kGood = R"({
  "schema": "lockstep-workload/1",
  "jobs": [
    {
      "name": "pair",
      "parallel": {"gpus":2,"tp":2,"ep":1,"pp":1,"vpp":1,"ga":1},
      "op_table": {
        "groups": [
          {"name":"tp","members":[[0,1]]}
        ],
        "programs": [
          {
            "ranks": [{"first":0,"end":1}],
            "streams": ["compute","comm"],
            "ops": [
              {"name":"f","stream":"compute","compute_ps":1500},
              {"stream":"comm","comm":"allreduce","group":"tp","bytes":64,"after":[0]},
              {"stream":"comm","send_to":1,"bytes":8}
            ]
          },
          {
            "ranks": [{"first":1,"end":2}],
            "streams": ["comm"],
            "ops": [
              {"stream":"comm","comm":"allreduce","group":"tp","bytes":64},
              {"stream":"comm","recv_from":0,"bytes":8}
            ]
          }
        ]
      }
    },
    {
      "name": "layers",
      "parallel": {"gpus":8,"tp":8,"ep":1,"pp":1,"vpp":1,"ga":0},
      "layer_table": {
        "policy": "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
        "pp_comm_bytes": 0.5,
        "mode": 1,
        "checkpoints": [0],
        "layers": [
          {"name":"a","forward":{"compute_ps":7,"comm":"allgather","group":"tp","bytes":9},"weight_grad":{"comm":"reducescatter","group":"dp_ep"},"update_ps":3},
          {"name":"a","dependency":4,"input_grad":{"bytes":5}}
        ]
      }
    }
  ]
}
)";

/// kGood with one piece replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    read_workload_json(text, "w.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(WorkloadJson, ReadsWhatTheDocumentSays) {
  const Workload workload = read_workload_json(kGood, "w.json");
  ASSERT_EQ(workload.jobs.size(), 2U);
  const auto& ops = std::get<OpTable>(workload.jobs[0].work);
  EXPECT_EQ(ops.programs[0].ops[1], (Op{.stream = 1,
                                        .comm = CommType::kAllReduce,
                                        .group = 0,
                                        .bytes = Bytes(64),
                                        .after = {0}}));
  EXPECT_EQ(
      ops.programs[1].ops[1],
      (Op{.stream = 0, .comm = CommType::kSendRecv, .peer = 0, .send = false, .bytes = Bytes(8)}));
  EXPECT_EQ(workload.jobs[1].parallel, (Parallelism{.gpus = 8, .tp = 8, .ga = 0}));
  const auto& layers = std::get<LayerTable>(workload.jobs[1].work);
  EXPECT_EQ(layers.names, (std::vector<std::string>{"a"}));
  EXPECT_EQ(layers.layers[0].weight_grad,
            (LayerPhase{Time(), Bytes(), CommType::kReduceScatter, GroupKind::kDpEp}));
  EXPECT_EQ(layers.layers[1].dependency, 4);
}

TEST(WorkloadJson, WritesTheSameDocument) {
  EXPECT_EQ(to_workload_json(read_workload_json(kGood, "w.json")), kGood);
}

TEST(WorkloadJson, Summary) {
  EXPECT_EQ(describe(read_workload_json(kGood, "w.json")),
            "job pair: 2 GPUs, tp 2, ep 1, pp 1, vpp 1, ga 1\n"
            "  rank 0: 3 operations, compute 1.5e-09 s\n"
            "    allreduce      tp                   1 x          64 B\n"
            "    sendrecv       to peers             1 x           8 B\n"
            "  rank 1: 2 operations, compute 0 s\n"
            "    allreduce      tp                   1 x          64 B\n"
            "    sendrecv       from peers           1 x           8 B\n"
            "job layers: 8 GPUs, tp 8, ep 1, pp 1, vpp 1, ga 0\n"
            "  all ranks: 2 layers, compute 7e-12 s\n"
            "    allgather      tp                   1 x           9 B\n"
            "    reducescatter  dp_ep                1 x           0 B\n");
}

TEST(WorkloadJsonErrors, Document) {
  EXPECT_EQ(error_of(with("workload/1", "workload/2")),
            "w.json: schema: unknown schema \"lockstep-workload/2\"\n"
            "  expected: \"lockstep-workload/1\"");
  EXPECT_EQ(error_of("{}"), "w.json: the field \"schema\" is missing");
  EXPECT_EQ(error_of(R"({"schema":"lockstep-workload/1","jobs":[]})"),
            "w.json: jobs: there are no jobs\n  expected: at least one job");
  EXPECT_EQ(error_of(R"({"schema":"lockstep-workload/1","jobs":{}})"),
            "w.json: jobs: expected an array");
  EXPECT_EQ(error_of(with("\"op_table\"", "\"op_tables\"")),
            "w.json: jobs[0]: unknown field \"op_tables\"\n"
            "  expected: name, parallel, layer_table, op_table\n"
            "  hint: did you mean \"op_table\"?");
  EXPECT_EQ(
      error_of(R"({"schema":"lockstep-workload/1","jobs":[{"name":"a","parallel":{}}]})"),
      "w.json: jobs[0]: the job has no work\n  expected: either a layer_table or an op_table");
  EXPECT_EQ(error_of(with("\"name\": \"layers\"", "\"name\": \"pair\"")),
            "w.json: jobs[1].name: another job has this name\n  expected: a name of its own");
  EXPECT_EQ(error_of(kGood.substr(0, kGood.size() / 2)).substr(0, 10), "w.json:24:");
}

TEST(WorkloadJsonErrors, Values) {
  EXPECT_EQ(error_of(with("\"gpus\":2", "\"gpus\":1e18")),
            "w.json: jobs[0].parallel.gpus: expected a whole number from 0 to 16777216, not "
            "1e+18");
  EXPECT_EQ(error_of(with("\"gpus\":2", "\"gpus\":0")),
            "w.json: jobs[0].parallel.gpus: 0 is out of range\n"
            "  expected: a whole number from 1 to 16777216");
  EXPECT_EQ(
      error_of(with("\"compute_ps\":1500", "\"compute_ps\":-1")),
      "w.json: jobs[0].op_table.programs[0].ops[0].compute_ps: expected a whole number from 0 "
      "to 9223372036854775807, not -1");
  EXPECT_EQ(
      error_of(with("\"compute_ps\":1500", "\"compute_ps\":1.5")),
      "w.json: jobs[0].op_table.programs[0].ops[0].compute_ps: expected a whole number from 0 "
      "to 9223372036854775807, not 1.5");
  EXPECT_EQ(error_of(with("\"bytes\":64", "\"bytes\":\"64\"")),
            "w.json: jobs[0].op_table.programs[0].ops[1].bytes: expected a whole number from 0 to "
            "9223372036854775807, not \"64\"");
  EXPECT_EQ(error_of(with("\"allreduce\"", "\"all_reduce\"")),
            "w.json: jobs[0].op_table.programs[0].ops[1].comm: unknown value \"all_reduce\"\n"
            "  expected: none, allreduce, allgather, reducescatter, alltoall, broadcast, reduce, "
            "barrier\n"
            "  hint: did you mean \"allreduce\"?");
  EXPECT_EQ(error_of(with("\"group\":\"dp_ep\"", "\"group\":\"dp+ep\"")),
            "w.json: jobs[1].layer_table.layers[0].weight_grad.group: unknown value \"dp+ep\"\n"
            "  expected: tp, dp, ep, dp_ep, pp, cp, world\n  hint: did you mean \"dp_ep\"?");
  EXPECT_EQ(error_of(with("\"checkpoints\": [0]", "\"checkpoints\": [2]")),
            "w.json: jobs[1].layer_table.checkpoints[0]: there is no layer 2\n"
            "  expected: a layer from 0 to 1");
  EXPECT_EQ(error_of(with("\"pp_comm_bytes\": 0.5", "\"pp_comm_bytes\": -1")),
            "w.json: jobs[1].layer_table.pp_comm_bytes: not a size\n"
            "  expected: a number of 0 or more");
  EXPECT_EQ(
      error_of(with("FWD_IN_BCKWD", "BCKWD")).substr(0, 89),
      "w.json: jobs[1].layer_table.policy: unknown parallelism policy 'HYBRID_TRANSFORMER_BCKWD'");
}

TEST(WorkloadJsonErrors, Operations) {
  const std::string op = "w.json: jobs[0].op_table.programs[0].ops";
  EXPECT_EQ(error_of(with("\"after\":[0]", "\"after\":[1]")),
            op + "[1].after[0]: operation 1 is not an earlier one\n"
                 "  expected: an operation from 0 to 0");
  EXPECT_EQ(error_of(with("\"compute_ps\":1500", "\"compute_ps\":1500,\"after\":[0]")),
            op + "[0].after[0]: operation 0 is not an earlier one\n"
                 "  expected: nothing: this is the first operation of the program");
  EXPECT_EQ(error_of(with("\"compute_ps\":1500", "\"compute_ps\":1500,\"comm\":\"barrier\"")),
            op + "[0]: both \"compute_ps\" and \"comm\"\n"
                 "  expected: one of compute_ps, comm, send_to, recv_from");
  EXPECT_EQ(error_of(with(",\"compute_ps\":1500", "")),
            op + "[0]: the kind of operation is missing\n"
                 "  expected: one of compute_ps, comm, send_to, recv_from");
  EXPECT_EQ(error_of(with("\"stream\":\"compute\"", "\"stream\":\"computer\"")),
            op + "[0].stream: there is no stream \"computer\"\n  hint: did you mean \"compute\"?");
  EXPECT_EQ(error_of(with("\"group\":\"tp\",\"bytes\":64,\"after\"",
                          "\"group\":\"dp\",\"bytes\":64,\"after\"")),
            op + "[1].group: there is no family of groups \"dp\"\n  hint: did you mean \"tp\"?");
  EXPECT_EQ(error_of(with("\"send_to\":1", "\"send_to\":2")),
            op + "[2].send_to: there is no rank 2\n  expected: a rank from 0 to 1");
  EXPECT_EQ(error_of(with("\"send_to\":1", "\"send_to\":0")),
            op + "[2].send_to: rank 0 runs this program itself\n"
                 "  expected: a rank with another program");
}

TEST(WorkloadJsonErrors, RanksThatDisagree) {
  EXPECT_EQ(error_of(with("\"send_to\":1,\"bytes\":8", "\"send_to\":1,\"bytes\":9")),
            "w.json: jobs[0].op_table.programs: rank 0 sends 1 messages (9 bytes) to rank 1, which "
            "receives 1 (8 bytes) from it\n"
            "  expected: sends and receives that agree for each pair of ranks");
  EXPECT_EQ(error_of(with(",\n              {\"stream\":\"comm\",\"send_to\":1,\"bytes\":8}", "")),
            "w.json: jobs[0].op_table.programs: rank 0 sends 0 messages (0 bytes) to rank 1, which "
            "receives 1 (8 bytes) from it\n"
            "  expected: sends and receives that agree for each pair of ranks");
  EXPECT_EQ(error_of(with("\"bytes\":64,\"after\"", "\"bytes\":65,\"after\"")),
            "w.json: jobs[0].op_table.groups[0].members[0]: the ranks of a group disagree: its "
            "collective number 0 is allreduce of 65 bytes on rank 0 and allreduce of 64 bytes on "
            "rank 1\n"
            "  expected: the same collectives in the same order on all ranks of a group");
}

TEST(WorkloadJsonErrors, GroupsAndRanks) {
  const std::string job = "w.json: jobs[0].op_table.";
  EXPECT_EQ(error_of(with("[[0,1]]", "[[0,1],[1]]")),
            job +
                "groups[0].members[1]: rank 1 is in a group of this family already: number 0\n"
                "  expected: groups of one family that do not overlap");
  EXPECT_EQ(error_of(with("[[0,1]]", "[[0,2]]")),
            job + "groups[0].members[0]: there is no rank 2\n  expected: ranks from 0 to 1");
  EXPECT_EQ(error_of(with("[[0,1]]", "[[0]]")),
            job + "programs[1].ops[0].group: rank 1 is in no group of the family \"tp\"");
  EXPECT_EQ(error_of(with("[[0,1]]", "[[0,1],[]]")),
            job + "groups[0].members[1]: the group is empty");
  EXPECT_EQ(error_of(with("{\"first\":1,\"end\":2}", "{\"first\":0,\"end\":2}")),
            job + "programs[1].ranks[0]: rank 0 has a program already: number 0");
  EXPECT_EQ(error_of(with("{\"first\":1,\"end\":2}", "{\"first\":1,\"end\":3}")),
            job +
                "programs[1].ranks[0]: not a range of ranks\n"
                "  expected: 0 <= first < end <= 2, stride >= 1");
  EXPECT_EQ(error_of(with("[\"compute\",\"comm\"]", "[\"compute\",\"comm\",\"comm\"]")),
            job +
                "programs[0].streams[2]: the name \"comm\" stands twice\n"
                "  expected: a name of its own");
}

/// What stands in the first fence of docs/formats/workload.md that opens with `opening`.
std::string documented(const std::string& opening) {
  const std::string page = testing::slurp(LOCKSTEP_SOURCE_DIR "/docs/formats/workload.md");
  const std::size_t begin = page.find("\n" + opening + "\n") + opening.size() + 2;
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST(WorkloadDocumentation, ExamplesAreValid) {
  EXPECT_EQ(error_of(documented("```json")), "no error");
  const std::string text = documented("```");
  EXPECT_EQ(to_simai_txt(read_simai_txt(text, "example.txt")), text);
}

}  // namespace
}  // namespace lockstep::workload_json_test
