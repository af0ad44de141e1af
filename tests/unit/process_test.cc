#include "generator/process/process.h"

#include <map>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/exact/exact_workload.h"
#include "generator/model/zoo.h"
#include "generator/process/ops_csv.h"
#include "generator/process/process_workload.h"
#include "tests/support/exact_models.h"
#include "tests/support/free_network.h"
#include "workloads/validate.h"

namespace lockstep::process_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Time a_microsecond(const Operator&) { return Time::us(1); }

/// 2 layers of width 8, 4 ranks, two microbatches a rank.
Job small_job(std::int64_t tp, std::int64_t pp) {
  Job job;
  job.model = testing::gpt(2, 8, 2, 32, 16);
  job.model.variables["hidden"] = 8;
  job.gpus = 4;
  job.tp = tp;
  job.pp = pp;
  job.seq = 16;
  job.global_batch = 2 * job.dp();
  return job;
}

const OpTable& table_of(const Workload& workload) {
  return std::get<OpTable>(workload.jobs[0].work);
}

std::vector<std::string> names(const OpProgram& program) {
  std::vector<std::string> result;
  for (const Op& op : program.ops) {
    result.push_back(op.name);
  }
  return result;
}

OpTable run(const Job& job, std::string_view text, bool with_init = false) {
  ProcessWorkload result =
      process_workload(job, a_microsecond, parse_process(text, "p.yaml"), with_init);
  validate(result.workload);
  return table_of(result.workload);
}

std::string failure(std::string_view text, std::int64_t max_ops = 10'000) {
  try {
    process_workload(small_job(1, 1), a_microsecond, parse_process(text, "p.yaml"), true, max_ops);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Process, ItemsFollowEachOtherAndOverlapUntilAWait) {
  const OpTable table = run(small_job(1, 1), R"(
forward:
  - {comm: all_reduce, name: a, group: dp, bytes: 10 * (microbatch + 1)}
  - {comm: all_reduce, name: b, group: dp, bytes: 2, overlap: true, when: first_microbatch}
  - {compute: c, bytes: 5}
step:
  - {compute: d, bytes: 5}
  - {wait: b}
  - {compute: e, bytes: 5}
)");
  ASSERT_EQ(table.programs.size(), 1U);
  const std::vector<Op>& ops = table.programs[0].ops;
  EXPECT_THAT(names(table.programs[0]),
              ElementsAre("forward 0 a", "forward 0 b", "forward 0 c", "forward 1 a", "forward 1 c",
                          "step d", "step e"));
  EXPECT_EQ(ops[0].bytes, Bytes(10));
  EXPECT_EQ(ops[3].bytes, Bytes(20));
  EXPECT_EQ(table.groups[static_cast<std::size_t>(ops[0].group)].name, "dp");
  EXPECT_THAT(ops[1].after, ElementsAre(0));
  EXPECT_THAT(ops[2].after, ElementsAre(0));  // not after b
  EXPECT_THAT(ops[5].after, ElementsAre(4));
  EXPECT_THAT(ops[6].after, ElementsAre(1, 5));  // d, and b at last
}

TEST(Process, SumsOfTheModelOnThisRank) {
  // Embeddings 32 * 8 + 16 * 8 = 384; a layer: two LayerNorms 32, qkv 8 * 24 + 24, out 64 + 8, MLP
  // 8 * 32 + 32 + 32 * 8 + 8 = 552, so 872; the norm at the end 16, its head is tied.
  const OpTable table = run(small_job(1, 1), R"(
variables: {twice: 2 * parameters}
step:
  - {comm: all_reduce, name: all, group: dp, bytes: twice}
  - each: unit
    items: [{comm: all_reduce, name: unit, group: dp, bytes: unit_parameters}]
  - {repeat: 2, items: [{comm: reduce, name: turn, group: dp, bytes: turn + hidden}]}
)");
  std::vector<std::int64_t> bytes;
  for (const Op& op : table.programs[0].ops) {
    bytes.push_back(op.bytes.count());
  }
  EXPECT_THAT(bytes, ElementsAre(2 * (384 + 2 * 872 + 16), 384, 872, 872, 16, 8, 9));
  EXPECT_EQ(table.programs[0].ops[1].name, "step embedding unit");
}

TEST(Process, OperationsSayWhatTheyAreFor) {
  const OpTable table = run(small_job(1, 1), R"(
forward:
  - {run: pass}
step:
  - {comm: all_reduce, group: dp, bytes: 8, type: grads-reduce-scatter}
  - {compute: x, bytes: 8, type: optimizer}
  - {comm: all_reduce, group: dp, bytes: 8}
)");
  const std::vector<Op>& ops = table.programs[0].ops;
  EXPECT_EQ(ops[0].type, OpType::kForward);
  EXPECT_EQ(ops[0].microbatch, 0);
  EXPECT_EQ(ops[0].chunk, 0);
  const std::size_t n = ops.size();
  EXPECT_EQ(ops[n - 3].type, OpType::kReduceGradients);
  EXPECT_EQ(ops[n - 3].microbatch, -1);
  EXPECT_EQ(ops[n - 2].type, OpType::kOptimizer);
  EXPECT_EQ(ops[n - 1].type, OpType::kOther);
  EXPECT_THAT(failure("step: [{compute: x, bytes: 8, type: optimiser}]"),
              HasSubstr("did you mean optimizer?"));
}

TEST(Process, WholeBackwardPassesOnly) {
  Job job = small_job(1, 2);
  job.schedule = "zb-h1";
  try {
    process_workload(job, a_microsecond, find_process("data-parallel"), false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("1f1b or gpipe"));
  }
}

TEST(Process, JsonIsReadToo) {
  const OpTable table = run(small_job(1, 1), R"({"step": [{"comm": "all_reduce", "group": "dp",
      "bytes": "with_eight * 2", "with": {"with_eight": 8}}]})");
  ASSERT_EQ(table.programs[0].ops.size(), 1U);
  EXPECT_EQ(table.programs[0].ops[0].bytes, Bytes(16));
}

TEST(Process, AModelFileMayHoldIt) {
  EXPECT_TRUE(has_process("name: x\nprocess: {step: [{wait: x}]}", "m.yaml"));
  EXPECT_FALSE(has_process("name: x\nblocks: []", "m.yaml"));
  const Process process = parse_process("name: x\nprocess: {step: [{wait: x}]}", "m.yaml");
  EXPECT_EQ(process.name, "x");
  EXPECT_EQ(process.step.size(), 1U);
  EXPECT_THAT(failure("name: x\nprocess: {step: [{wiat: x}]}"), HasSubstr("process.step[0]"));
}

TEST(Process, GroupsOfOneAreLeftOut) {
  Job one_copy = small_job(2, 1);
  one_copy.gpus = 2;
  one_copy.global_batch = 2;
  const OpTable table = run(one_copy, R"(
step:
  - {comm: all_reduce, group: dp, bytes: 8}
  - {comm: all_reduce, group: tp, bytes: 8}
  - {send: next, bytes: 8}
  - {comm: barrier, group: world}
)");
  EXPECT_THAT(names(table.programs[0]), ElementsAre("step all_reduce tp", "step barrier world"));
}

TEST(Process, PipelineMessagesMeet) {
  const Job job = small_job(1, 2);
  const ProcessWorkload result =
      process_workload(job, a_microsecond, find_process("data-parallel"), false);
  EXPECT_EQ(table_of(result.workload).programs.size(), 2U);
  const StepResult step = testing::simulate_free(result.workload);
  const StepResult built_in = testing::simulate_free(exact_workload(job, a_microsecond));
  EXPECT_EQ(step.total, built_in.total);
}

/// The optimizer's operations of a program, in their order.
std::vector<std::string> optimizer_of(const Workload& workload) {
  std::vector<std::string> found;
  for (const Op& op : table_of(workload).programs[0].ops) {
    if (op.type == OpType::kOptimizer) {
      found.push_back(op.name.substr(op.name.starts_with("step ") ? 5 : 0) + " " +
                      std::to_string(op.compute.count_ps()));
    }
  }
  return found;
}

TEST(Process, OptimizersAreTheBuiltInOnes) {
  const auto by_bytes = [](const Operator& op) {
    return Time::ps(static_cast<std::int64_t>(16 * op.bytes) +
                    static_cast<std::int64_t>(op.memory_work));
  };
  for (const Precision precision : {Precision::kBf16, Precision::kFp32}) {
    for (const auto& [name, sharding] : {std::pair("data-parallel", Sharding::kNone),
                                         std::pair("distributed-optimizer", Sharding::kZero1),
                                         std::pair("fully-sharded", Sharding::kZero3)}) {
      Job job = small_job(1, 1);
      job.precision = precision;
      job.sharding = sharding;
      const auto by_process = process_workload(job, by_bytes, find_process(name), false).workload;
      EXPECT_EQ(optimizer_of(by_process), optimizer_of(exact_workload(job, by_bytes))) << name;
    }
  }
}

// Experts that have one replica, and a whole model that has one, keep their gradients in ZeRO-3,
// too.
TEST(Process, GradientsOfOneReplicaAreReset) {
  const auto by_bytes = [](const Operator& op) {
    return Time::ps(static_cast<std::int64_t>(16 * op.bytes));
  };
  for (const bool experts : {false, true}) {
    Job job;
    job.model = testing::llama(4, 64, 8, 8, 128, 256, experts ? 8 : 0);
    job.gpus = 4;
    job.tp = experts ? 1 : 4;
    job.ep = experts ? 4 : 1;
    job.seq = 32;
    job.sharding = Sharding::kZero3;
    job.global_batch = job.dp();
    const auto by_process =
        process_workload(job, by_bytes, find_process("fully-sharded"), false).workload;
    const std::vector<std::string> found = optimizer_of(by_process);
    EXPECT_EQ(found, optimizer_of(exact_workload(job, by_bytes))) << experts;
    EXPECT_THAT(found, ::testing::Contains(::testing::StartsWith("gradient reset"))) << experts;
  }
}

/// Messages meet in every order of passes that a process may have.
TEST(Process, BuiltInsRunToTheirEnd) {
  for (const std::string_view name : list_processes()) {
    for (const auto& [pp, vpp, schedule] : {std::tuple{1, 1, "1f1b"},
                                            {2, 1, "gpipe"},
                                            {2, 2, "1f1b"},
                                            {4, 1, "1f1b"},
                                            {4, 2, "1f1b"}}) {
      SCOPED_TRACE(fmt::format("{} pp {} vpp {} {}", name, pp, vpp, schedule));
      Job job;
      job.model = testing::gpt(8, 8, 2, 32, 16);
      job.gpus = 8;
      job.pp = pp;
      job.vpp = vpp;
      job.schedule = schedule;
      job.seq = 16;
      job.global_batch = job.dp() * 2 * pp;
      const ProcessWorkload result =
          process_workload(job, a_microsecond, find_process(std::string(name)), true);
      EXPECT_GT(testing::simulate_free(result.workload).total, Time());
    }
  }
}

TEST(Process, MessagesNeedACounterpart) {
  const auto wrong = [](std::string_view text) -> std::string {
    try {
      process_workload(small_job(1, 2), a_microsecond, parse_process(text, "p.yaml"), false);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(wrong("{name: one-way, forward: [{send: next, bytes: 8, when: has_next}]}"),
              AllOf(HasSubstr("while checking what the process 'one-way'"),
                    HasSubstr("rank 0 sends 2 messages")));
  EXPECT_THAT(wrong("step: [{comm: all_reduce, group: world, bytes: 8, when: first_stage}]"),
              HasSubstr("the ranks of a group disagree"));
}

TEST(Process, InitIsAheadOfTheStepIfWanted) {
  const Process process = find_process("data-parallel");
  const Job job = small_job(1, 1);
  const ProcessWorkload with = process_workload(job, a_microsecond, process, true);
  EXPECT_THAT(with.init_ops, ElementsAre(1U));
  EXPECT_EQ(table_of(with.workload).programs[0].ops[0].name, "init parameters");
  EXPECT_THAT(process_workload(job, a_microsecond, process, false).init_ops, ElementsAre(0U));
}

using Traffic = std::map<std::pair<std::string, CommType>, std::int64_t>;

/// Bytes of each family and collective, all stages; the loss and what parameters are gathered for.
Traffic traffic(const Workload& workload) {
  Traffic sums;
  const OpTable& table = table_of(workload);
  for (const OpProgram& program : table.programs) {
    for (const Op& op : program.ops) {
      if (op.comm != CommType::kNone) {
        sums[{table.groups[static_cast<std::size_t>(op.group)].name, op.comm}] += op.bytes.count();
      }
    }
  }
  return sums;
}

/// The built-in processes communicate what the built-in step does.
TEST(Process, BuiltInsMoveWhatTheBuiltInStepMoves) {
  for (const auto& [name, sharding] : {std::pair{"data-parallel", Sharding::kNone},
                                       {"distributed-optimizer", Sharding::kZero1},
                                       {"fully-sharded", Sharding::kZero3}}) {
    for (const bool moe : {false, true}) {
      for (const std::int64_t vpp : {1, 2}) {
        SCOPED_TRACE(std::string(name) + (moe ? " moe" : "") + (vpp > 1 ? " vpp" : ""));
        Job job;
        job.model = testing::llama(4, 64, 8, 8, 128, 256, moe ? 8 : 0);
        job.gpus = 16;
        job.tp = job.pp = 2;
        job.ep = moe ? 2 : 1;
        job.vpp = vpp;
        job.seq = 32;
        job.sequence_parallel = true;
        job.sharding = sharding;
        job.overlap_parameters = false;
        job.gradient_bucket = 20'000;
        job.global_batch = job.dp() * 4;
        const Traffic ours =
            traffic(process_workload(job, a_microsecond, find_process(name), false).workload);
        const Traffic exact = traffic(exact_workload(job, a_microsecond));
        EXPECT_EQ(ours, exact);
      }
    }
  }
}

TEST(Process, CsvHasInitAndOneEpoch) {
  const Job job = small_job(2, 1);
  const ProcessWorkload result =
      process_workload(job, a_microsecond, find_process("data-parallel"), true);
  std::string text;
  BlockWriter out([&](std::string_view piece) { text += piece; });
  const auto left_out = write_ops_csv(result.workload.jobs[0], result.init_ops[0], out);
  out.flush();
  EXPECT_THAT(text, HasSubstr("broadcast,CommGroup.dp_group,2,"));
  EXPECT_THAT(text, HasSubstr("init.parameters,None,0,"));
  EXPECT_THAT(text, HasSubstr("backward.1 gradients,"));
  EXPECT_EQ(left_out, (std::map<std::string, std::int64_t>{{"tp.model", 1}}));
  std::size_t ends = 0;
  for (std::size_t at = 0; (at = text.find("epoch_end", at)) != std::string::npos; ++at) {
    ++ends;
  }
  EXPECT_EQ(ends, 2U);
}

TEST(Process, WrongExpressionsNameFileLineAndVariable) {
  const std::string text = failure(R"(
forward:
  - {run: pass}
step:
  - each: unit
    items:
      - {comm: all_reduce, group: dp, bytes: unit_paramters * gradient_width}
)");
  EXPECT_THAT(text, HasSubstr("p.yaml:7"));
  EXPECT_THAT(text, HasSubstr("step[0].items[0].bytes"));
  EXPECT_THAT(text, HasSubstr("unknown variable 'unit_paramters'"));
  EXPECT_THAT(text, HasSubstr("did you mean unit_parameters?"));
  EXPECT_THAT(failure("step: [{comm: all_reduce, group: dp, bytes: 1 / 3}]"),
              HasSubstr("no whole number"));
  EXPECT_THAT(failure("step: [{comm: all_reduce, group: dp, bytes: 0 - 8}]"),
              HasSubstr("out of range"));
  EXPECT_THAT(failure("step: [{compute: x, flops: 0 - 8}]"), HasSubstr("below 0"));
  EXPECT_THAT(failure("step: [{comm: reduce, group: dp, bytes: microbatch}]"),
              HasSubstr("did you mean micro_batch?"));
  EXPECT_THAT(failure("variables: {tp: 3}\nstep: [{wait: x}]"),
              HasSubstr("p.yaml:1: variables.tp: the variable 'tp' is there already"));
  EXPECT_THAT(failure("step: [{run: pass}]"), HasSubstr("run under forward and backward"));
}

TEST(Process, WrongItemsSayWhatIsExpected) {
  EXPECT_THAT(failure("setp: []"), HasSubstr("did you mean step?"));
  EXPECT_THAT(failure("name: x"), HasSubstr("a process without items"));
  EXPECT_THAT(failure("step: {comm: x}"), HasSubstr("not a list"));
  EXPECT_THAT(failure("step: [{bytes: 8}]"), HasSubstr("what the item does is missing"));
  EXPECT_THAT(failure("step: [{comm: reduce, send: next, group: dp, bytes: 8}]"),
              HasSubstr("both comm and send"));
  EXPECT_THAT(failure("step: [{comm: all_reduc, group: dp, bytes: 8}]"),
              HasSubstr("did you mean all_reduce?"));
  EXPECT_THAT(failure("step: [{comm: reduce, group: dpp, bytes: 8}]"),
              HasSubstr("unknown group 'dpp'"));
  EXPECT_THAT(failure("step: [{comm: reduce, group: dp}]"), HasSubstr("'bytes' is missing"));
  EXPECT_THAT(failure("step: [{comm: reduce, group: dp, byte: 8}]"),
              HasSubstr("did you mean bytes?"));
  EXPECT_THAT(failure("step: [{send: up, bytes: 8}]"), HasSubstr("next, previous"));
  EXPECT_THAT(failure("step: [{compute: x}]"), HasSubstr("'flops' or 'bytes' is missing"));
  EXPECT_THAT(failure("forward: [{run: unit}]"), HasSubstr("outside 'each: unit'"));
  EXPECT_THAT(failure("forward: [{each: unit, items: [{run: pass}]}]"),
              HasSubstr("expected: unit"));
  EXPECT_THAT(failure("forward: [{each: layer, items: []}]"), HasSubstr("unit, bucket"));
  EXPECT_THAT(failure("step: [{repeat: 2}]"), HasSubstr("'items' is missing"));
  EXPECT_THAT(failure("step: [{wait: x, overlap: true}]"), HasSubstr("unknown key 'overlap'"));
  EXPECT_THAT(failure("step: [\n"), HasSubstr("no YAML"));
}

TEST(Process, EndlessOnesEnd) {
  EXPECT_THAT(failure("step: [{repeat: 1e6, items: [{comm: reduce, group: dp, bytes: 8}]}]"),
              HasSubstr("at most 10000"));
  EXPECT_THAT(failure("step: [{repeat: 1e6, items: [{wait: x}]}]"),
              HasSubstr("too many items to run"));
  EXPECT_THAT(failure("step: [{repeat: 1e7, items: [{wait: x}]}]"), HasSubstr("out of range"));
}

TEST(Process, AVariableOfTheModelMayNotHaveAJobsName) {
  Job job = small_job(1, 1);
  job.model.variables["stage"] = 3;
  try {
    process_workload(job, a_microsecond, find_process("data-parallel"), false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("variables.stage"));
  }
}

TEST(Process, NamesOfTheBuiltIns) {
  EXPECT_THAT(list_processes(),
              ElementsAre("data-parallel", "distributed-optimizer", "fully-sharded"));
  try {
    find_process("dataparallel");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean data-parallel?"));
  }
}

/// No architecture has a variable that a process could mistake for one of the job.
TEST(Process, EveryArchitectureRunsEveryBuiltIn) {
  for (const std::string_view architecture : list_architectures()) {
    for (const std::string_view name : list_processes()) {
      SCOPED_TRACE(std::string(architecture) + " " + std::string(name));
      Job job;
      const bool paired = architecture == "gemma";
      job.model = find_model(architecture, {{"layers", paired ? 2 : 4}});
      job.gpus = 2;
      job.seq = 64;
      job.global_batch = 2;
      validate(
          process_workload(job, a_microsecond, find_process(std::string(name)), true).workload);
    }
  }
}

}  // namespace
}  // namespace lockstep::process_test
