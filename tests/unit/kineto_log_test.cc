// The reader of PyTorch's traces (Kineto), and what timelines of other programs share with it.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/small_logs.h"
#include "trace/host_calls.h"
#include "trace/log_reader.h"

namespace lockstep::kineto_log_test {
namespace {

using testing::corpus;
using testing::name_of;

TEST(KinetoLog, KernelsWithSizes) {
  const PhysicalLog log = corpus("kineto/rank_1.json");
  EXPECT_EQ(log.format, "kineto");
  ASSERT_EQ(log.ops.size(), 3U);
  EXPECT_EQ(log.ops[0].rank, 1);
  EXPECT_EQ(name_of(log, log.ops[0]), "gemm \"quoted\"");
  EXPECT_EQ(log.ops[1].kind, OpKind::kCommunication);
  EXPECT_EQ(log.ops[1].op, CommType::kAllReduce);
  EXPECT_EQ(log.ops[1].bytes, 2048);
  EXPECT_EQ(log.ops[1].group_size, 2);
  EXPECT_NEAR(log.ops[1].begin_s, 99.75e-6, 1e-12);
  EXPECT_EQ(log.ops[2].kind, OpKind::kCopy);
  ASSERT_EQ(log.comms.size(), 1U);  // the all-reduce, whose size is known
  EXPECT_DOUBLE_EQ(log.comms[0].time_s, 50e-6);
  EXPECT_EQ(log.comms[0].ranks, 2);
  ASSERT_EQ(log.steps.size(), 1U);
  EXPECT_EQ(log.steps[0].step, 3);
  EXPECT_EQ(log.facts.at("world_size"), "2");
  EXPECT_EQ(log.facts.at("gpu"), "NVIDIA H100");
  const PhysicalLog cut = corpus("kineto/cut.json");
  EXPECT_EQ(cut.ops.size(), 2U);
  EXPECT_EQ(cut.warnings.entries().at(0).text, "the file is cut off within an event");
}

/// Of PyTorch before 2.2: the kernels are named, their sizes are those of the calls that launched
/// them.
std::string shaped_trace(int world_size) {
  return R"trace({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": )trace" +
         std::to_string(world_size) + R"trace(}, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "c10d::_allgather_base_", "pid": 5, "tid": 6, "ts": 100, "dur": 50,
     "args": {"Input Dims": [[8, 32], [2, 32], []], "Input type": ["c10::BFloat16", "c10::BFloat16", ""]}},
    {"ph": "X", "cat": "user_annotation", "name": "nccl:_all_gather_base", "pid": 5, "tid": 6, "ts": 110, "dur": 30,
     "args": {"Input Dims": [[2, 32]], "Input type": ["c10::BFloat16"]}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 5, "tid": 6, "ts": 120, "dur": 5,
     "args": {"correlation": 71}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 5, "tid": 7, "ts": 121, "dur": 5,
     "args": {"correlation": 72}},
    {"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "pid": 5, "tid": 6, "ts": 160, "dur": 30,
     "args": {"Input Dims": [[10], [3, 2]], "Input type": ["float", "long int"]}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 6, "ts": 190, "dur": 5,
     "args": {"correlation": 73}},
    {"ph": "X", "cat": "user_annotation", "name": "nccl:all_to_all", "pid": 5, "tid": 6, "ts": 200, "dur": 10,
     "args": {"Input Dims": [[7]], "Input type": ["c10::Quantum"]}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 6, "ts": 205, "dur": 1,
     "args": {"correlation": 74}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", "pid": 0, "tid": 20,
     "ts": 1000, "dur": 40, "args": {"stream": 20, "correlation": 71}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", "pid": 0, "tid": 20,
     "ts": 1100, "dur": 40, "args": {"stream": 20, "correlation": 72}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "pid": 0, "tid": 20,
     "ts": 1200, "dur": 40, "args": {"stream": 20, "correlation": 73}},
    {"ph": "X", "cat": "kernel", "name": "ncclKernel_SendRecv_RING_SIMPLE", "pid": 0, "tid": 20,
     "ts": 1300, "dur": 40, "args": {"stream": 20, "correlation": 74}}]})trace";
}

TEST(KinetoLog, SizesOfTheCallsBehindKernels) {
  const PhysicalLog log = read_log(shaped_trace(8), "rank_0.json");
  ASSERT_EQ(log.ops.size(), 4U);
  EXPECT_EQ(log.ops[0].bytes, 4 * 2 * 32 * 2);  // gathered from 8 x 32 over 2 x 32: four ranks
  EXPECT_EQ(log.ops[0].group_size, 4);
  EXPECT_EQ(log.ops[1].bytes, -1);  // launched on a thread without calls
  EXPECT_EQ(log.ops[1].group_size, 0);
  EXPECT_EQ(log.ops[2].bytes, 10 * 4 + 6 * 8);  // two tensors; how many ranks is not told
  EXPECT_EQ(log.ops[2].group_size, 0);
  EXPECT_EQ(log.ops[3].op, CommType::kAllToAll);  // what was asked for, not how it was done
  EXPECT_EQ(log.ops[3].bytes, -1);                // of an unknown type
  ASSERT_EQ(log.comms.size(), 1U);
  EXPECT_EQ(log.comms[0].op, CommType::kAllGather);
  EXPECT_EQ(log.comms[0].ranks, 4);
}

// NCCL's kernels by release: up to 2.7, 2.8 to 2.18, since 2.19, and those of symmetric memory.
TEST(KinetoLog, KernelsOfAllReleases) {
  for (const auto& [name, op] : std::initializer_list<std::pair<const char*, CommType>>{
           {"ncclAllReduceRingLLKernel_sum_f16(ncclColl)", CommType::kAllReduce},
           {"ncclReduceRingLLKernel_sum_f32(ncclColl)", CommType::kReduce},
           {"ncclReduceScatterRingKernel_sum_f32(ncclColl)", CommType::kReduceScatter},
           {"ncclSendRecvKernel_copy_i8(ncclColl)", CommType::kSendRecv},
           {"ncclKernel_AllReduce_TREE_LL128_Sum_half(ncclWorkElem)", CommType::kAllReduce},
           {"ncclKernel_Reduce_RING_LL_Sum_float(ncclDevComm*)", CommType::kReduce},
           {"ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*)", CommType::kBroadcast},
           {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", CommType::kReduceScatter},
           {"ncclDevKernel_Reduce_Sum_f32_RING_LL", CommType::kReduce},
           {"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", CommType::kNone},
           {"ncclSymDevKernel_ReduceScatter_LDMC_sum_bf16", CommType::kReduceScatter},
           {"ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_f16", CommType::kAllReduce}}) {
    EXPECT_EQ(comm_type_in(name), op) << name;
  }
}

// A kernel of which PyTorch tells the collective is communication, whoever carries it out.
TEST(KinetoLog, CollectivesOfOtherLibraries) {
  const PhysicalLog log = read_log(
      R"({"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "mscclKernel_Sum_half_LL", "pid": 0, "tid": 20, "ts": 1,
     "dur": 2, "args": {"stream": 20, "Group size": 8, "dtype": "Half", "Collective name":
     "allreduce", "In msg nelems": 256}}]})",
      "rank_0.json");
  ASSERT_EQ(log.comms.size(), 1U);
  EXPECT_EQ(log.comms[0].op, CommType::kAllReduce);
  EXPECT_EQ(log.ops.at(0).kind, OpKind::kCommunication);
}

TEST(KinetoLog, TypesOfElements) {
  for (const auto& [type, bytes] :
       std::initializer_list<std::pair<const char*, int>>{{"Float", 4},
                                                          {"BFloat16", 2},
                                                          {"c10::Half", 2},
                                                          {"long int", 8},
                                                          {"Int", 4},
                                                          {"Short", 2},
                                                          {"UInt16", 2},
                                                          {"int16", 2},
                                                          {"Double", 8},
                                                          {"UInt64", 8},
                                                          {"Byte", 1},
                                                          {"unsigned char", 1},
                                                          {"Bool", 1},
                                                          {"QInt8", 1},
                                                          {"Float8_e4m3fn", 1},
                                                          {"Float4_e2m1fn_x2", 1},
                                                          {"ComplexFloat", 8},
                                                          {"ComplexHalf", 4},
                                                          {"ComplexDouble", 16},
                                                          {"c10::complex<float>", 8},
                                                          {"complex64", 8},
                                                          {"Quantum", 0}}) {
    EXPECT_EQ(element_bytes(type), bytes) << type;
  }
}

// Shapes that no tensor has give no size, and nothing wraps.
TEST(KinetoLog, ShapesOfNonsense) {
  std::string text = shaped_trace(8);
  const auto put = [&](const std::string& old, const std::string& instead) {
    text.replace(text.find(old), old.size(), instead);
  };
  put("[[8, 32], [2, 32], []]", "[[36893488147419103232, 16777215], [36893488147419103232], {}]");
  put("[[2, 32]]", "[[9223372036854775807, 9223372036854775807], 3, \"x\"]");
  put("[[10], [3, 2]]", "[[1125899906842623], [-3, 2], [[[0]]]]");
  put(R"(, "Input type": ["c10::Quantum"])", "");
  const PhysicalLog log = read_log(text, "rank_0.json");
  ASSERT_EQ(log.ops.size(), 4U);
  EXPECT_EQ(log.ops[0].group_size, 0);
  EXPECT_EQ(log.ops[0].bytes, -1);
  EXPECT_EQ(log.ops[2].bytes, std::int64_t{1} << 50);
  EXPECT_TRUE(log.comms.empty());
}

// A gather of four ranks' 256 floats, a scatter of 256 to each, both carried out as send/receives.
TEST(KinetoLog, GathersAndScatters) {
  const auto kernel = [](const char* op, int in, int out) {
    return fmt::format(
        R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "pid": 0,
        "tid": 20, "ts": {}, "dur": 2, "args": {{"stream": 20, "Process Group Name": "tp",
        "Group size": 4, "dtype": "Float", "Collective name": "{}", "In msg nelems": {},
        "Out msg nelems": {}}}}})",
        in + out, op, in, out);
  };
  const PhysicalLog log =
      read_log(R"({"schemaVersion": 1, "traceEvents": [)" + kernel("gather", 256, 1024) + "," +
                   kernel("scatter", 0, 256) + "," + kernel("send", 256, 256) + "]}",
               "rank_1.json");
  ASSERT_EQ(log.comms.size(), 3U);
  std::map<std::string, CommRow> rows;
  for (const CommRow& row : log.comms) {
    rows[log.names.at(static_cast<std::size_t>(row.name))] = row;
  }
  EXPECT_EQ(rows.at("gather").bytes, Bytes(4096));
  EXPECT_EQ(rows.at("gather").op, CommType::kNone);
  EXPECT_EQ(rows.at("gather").ranks, 4);
  EXPECT_EQ(rows.at("scatter").bytes, Bytes(4096));
  EXPECT_EQ(rows.at("ncclDevKernel_SendRecv").bytes, Bytes(1024));
  // Sizes of parts without a group's size say nothing of the whole.
  std::string alone = kernel("gather", 256, 1024);
  alone.erase(alone.find("\"Group size\": 4, "), 17);
  alone = R"({"schemaVersion": 1, "traceEvents": [)" + alone + "]}";
  const PhysicalLog unknown = read_log(alone, "rank_1.json");
  ASSERT_EQ(unknown.ops.size(), 1U);
  EXPECT_EQ(unknown.ops[0].bytes, -1);
  // Before PyTorch 2.2, by the call behind the kernel.
  std::string text = shaped_trace(2);
  text.replace(text.find("nccl:all_reduce"), 15, "nccl:gather");
  const PhysicalLog old = read_log(text, "rank_0.json");
  EXPECT_EQ(name_of(old, old.ops.at(2)), "gather");
  EXPECT_EQ(old.ops[2].op, CommType::kNone);
  EXPECT_EQ(old.ops[2].bytes, 2 * 88);
}

// Steps 4 and 5 lie at 100 to 200 and 200 to 300, 6 is where profiling ended. The GPU is late.
TEST(KinetoLog, StepsAreOfWhatWasLaunchedInThem) {
  const auto span = [](const char* cat, const char* name, int ts, int dur, int correlation) {
    return fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {},
        "args": {{"stream": 7, "correlation": {}}}}})",
        cat, name, ts, dur, correlation);
  };
  const auto steps_of = [](const std::vector<std::string>& events) {
    std::string text = R"({"schemaVersion": 1, "traceEvents": [)";
    for (const std::string& event : events) {
      text += (text.ends_with('[') ? "" : ",") + event;
    }
    const PhysicalLog log = read_log(text + "]}", "rank_0.json");
    std::vector<std::int64_t> steps;
    for (const OpRow& op : log.ops) {
      steps.push_back(op.step);
    }
    return std::pair(log, steps);
  };
  std::vector<std::string> events = {span("user_annotation", "ProfilerStep#4", 100, 100, -1),
                                     span("user_annotation", "ProfilerStep#5", 200, 100, -1),
                                     span("user_annotation", "ProfilerStep#6", 300, 1, -1),
                                     span("cuda_runtime", "cudaLaunchKernel", 50, 2, 1),
                                     span("kernel", "warm-up", 110, 10, 1),
                                     span("cuda_runtime", "cudaLaunchKernel", 150, 2, 2),
                                     span("kernel", "gemm", 210, 10, 2),
                                     span("cuda_runtime", "cudaMemcpyAsync", 250, 2, 3),
                                     span("gpu_memcpy", "Memcpy HtoD", 310, 10, 3),
                                     span("kernel", "of no launch", 320, 10, 4)};
  const auto [log, steps] = steps_of(events);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{-1, 4, 5, -1}));
  ASSERT_EQ(log.steps.size(), 2U);
  EXPECT_EQ(log.steps[1].step, 5);
  EXPECT_EQ(log.warnings.entries().at(0).text,
            "steps in which the GPU was given nothing to do were left out");
  events.push_back(span("gpu_user_annotation", "ProfilerStep#5", 305, 30, -1));
  EXPECT_EQ(steps_of(events).second, (std::vector<std::int64_t>{-1, 4, 5, 5}));
}

TEST(KinetoLog, GroupsOfAWorldOfTwo) {
  const PhysicalLog log = read_log(shaped_trace(2), "rank_0.json");
  ASSERT_EQ(log.ops.size(), 4U);
  EXPECT_EQ(log.ops[2].group_size, 2);
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.comms[1].bytes, Bytes(88));
}

TEST(KinetoLog, GroupsAreNamesAndRanks) {
  const std::string text = R"({"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "ts": 1,
     "dur": 2, "args": {"stream": 20, "Process Group Name": "tp", "Group size": 2,
     "Process Group Ranks": "[0, 8]"}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "ts": 5,
     "dur": 2, "args": {"stream": 20, "Process Group Name": "tp", "Group size": 2,
     "Process Group Ranks": [1, 9]}}]})";
  const PhysicalLog log = read_log(text, "rank_0.json");
  ASSERT_EQ(log.ops.size(), 2U);
  EXPECT_NE(log.ops[0].group, log.ops[1].group);
  EXPECT_EQ(members_of(log, log.ops[0].group), (std::vector<std::int32_t>{0, 8}));
  EXPECT_EQ(members_of(log, log.ops[1].group), (std::vector<std::int32_t>{1, 9}));
  const PhysicalLog sized = read_log(
      R"({"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "ts": 1,
     "dur": 2, "args": {"Group size": 2, "Process Group Ranks": "[0, 8]", "dtype": "Float",
     "Collective name": "allreduce", "In msg nelems": 256}}]})",
      "rank_0.json");
  EXPECT_EQ(sized.settings.at(0).ranks, 9);  // a world that has a rank 8
  EXPECT_TRUE(sized.settings[0].ranks_guessed);
}

// Of long lists PyTorch writes the beginning, and in some releases the end.
TEST(KinetoLog, CutListsOfRanksGoOnAsTheyBegin) {
  const auto read = [](const std::string& ranks, int size) {
    return read_log(
        fmt::format(R"({{"schemaVersion": 1, "distributedInfo": {{"rank": 0, "world_size": 40}},
    "traceEvents": [{{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0,
     "tid": 20, "ts": 1, "dur": 2, "args": {{"stream": 20, "Group size": {}, "dtype": "Float",
     "Collective name": "allreduce", "In msg nelems": 256, "Process Group Ranks": "{}"}}}}]}})",
                    size, ranks),
        "rank_0.json");
  };
  const auto members = [&](const std::string& ranks, int size) {
    const PhysicalLog log = read(ranks, size);
    return members_of(log, log.comms.at(0).group);
  };
  const std::vector<std::int32_t> whole = {0, 8, 16, 24, 32}, none;
  EXPECT_EQ(members("[0, 8, 16, ...]", 5), whole);
  EXPECT_EQ(members("[0, 8, ..., 32]", 5), whole);
  EXPECT_EQ(read("[0, 8, 16, ...]", 5).warnings.total(), 0);
  EXPECT_EQ(members("[0, 8, 16, ...]", 6), none);  // the world has no rank 40
  EXPECT_EQ(members("[0, 1, 8, ...]", 5), none);   // not equally far apart
  EXPECT_EQ(members("[0, 8, ..., 33]", 5), none);  // nor here
  EXPECT_EQ(members("[0, ...]", 5), none);         // nobody knows
  EXPECT_EQ(members("[8, 8, ..., 8]", 5), none);
  const PhysicalLog unknown = read("[0, 1, 8, ...]", 5);
  ASSERT_EQ(unknown.warnings.entries().size(), 1U);
  EXPECT_EQ(unknown.warnings.entries()[0].text,
            "groups whose list of ranks is cut, and does not tell how it goes on, are taken to be "
            "on as few servers as hold them");
}

// A short file cannot ask for gigabytes.
TEST(KinetoLog, RanksOfAllListsTogetherAreBounded) {
  std::string text = R"({"schemaVersion": 1, "traceEvents": [)";
  for (int i = 0; i < 100; ++i) {
    text += fmt::format(
        R"({}{{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20,
        "ts": {}, "dur": 2, "args": {{"Group size": 262144, "Process Group Name": "{}",
        "Process Group Ranks": "[0, 1, ...]"}}}})",
        i == 0 ? "" : ",", i, i);
  }
  const PhysicalLog log = read_log(text + "]}", "rank_0.json");
  std::size_t ranks = 0;
  for (const auto& members : log.members) {
    ranks += members.size();
  }
  EXPECT_EQ(ranks, 16U << 18);
  EXPECT_EQ(log.warnings.total(), 84);
}

// Conversions of clocks have given kernels a duration of -1.
TEST(KinetoLog, KernelsWithoutADurationAreTold) {
  const PhysicalLog log = read_log(R"({"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": -1},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy", "pid": 0, "tid": 7, "ts": 2},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 7, "ts": 2, "dur": -1},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 3, "dur": 5}]})",
                                   "rank_0.json");
  EXPECT_EQ(log.ops.size(), 1U);
  ASSERT_EQ(log.warnings.entries().size(), 1U);
  EXPECT_EQ(log.warnings.entries()[0].text,
            "operations of a GPU without a begin or a duration were left out");
  EXPECT_EQ(log.warnings.entries()[0].count, 2);
}

// What stands behind the events counts however long it is.
TEST(KinetoLog, LongMetadata) {
  const PhysicalLog log = read_log(
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2}],
      "noise": ")" +
          std::string(100'000, 'x') +
          R"(", "schemaVersion": 1, "distributedInfo": {"rank": 5, "world_size": 8}})",
      "t.json");
  EXPECT_EQ(log.ops.at(0).rank, 5);
  EXPECT_EQ(log.facts.at("world_size"), "8");
}

// Before Kineto: the host and the GPU are two processes of one rank.
TEST(KinetoLog, TracesOfTheLegacyProfiler) {
  const PhysicalLog log = read_log(R"([
    {"name": "aten::mm", "ph": "X", "ts": 1, "dur": 10, "tid": 1, "pid": "CPU functions"},
    {"name": "gemm", "ph": "X", "ts": 3, "dur": 5, "tid": 7, "pid": "CUDA functions"},
    {"name": "Memcpy HtoD", "ph": "X", "ts": 9, "dur": 2, "tid": 7, "pid": "CUDA functions"}])",
                                   "rank_3.json");
  ASSERT_EQ(log.ops.size(), 3U);
  EXPECT_EQ(log.ops[0].kind, OpKind::kHost);
  EXPECT_EQ(log.ops[1].kind, OpKind::kCompute);
  EXPECT_EQ(log.ops[2].kind, OpKind::kCopy);
  EXPECT_EQ(log.ops[1].rank, 3);
}

// Beside a collective that can be compared: one of no size, one of an unknown type.
TEST(KinetoLog, CommunicationsThatCannotBeComparedAreCounted) {
  const auto kernel = [](int at, int size, const char* type) {
    return fmt::format(
        R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20,
        "ts": {}, "dur": 2, "args": {{"stream": 20, "Group size": 8, "dtype": "{}",
        "Collective name": "allreduce", "In msg nelems": {}}}}})",
        at, type, size);
  };
  const PhysicalLog log =
      read_log(R"({"schemaVersion": 1, "traceEvents": [)" + kernel(1, 256, "Float") + "," +
                   kernel(11, 0, "Float") + "," + kernel(21, 256, "Quantum") + "]}",
               "rank_0.json");
  EXPECT_EQ(log.comms.size(), 1U);
  ASSERT_EQ(log.warnings.entries().size(), 1U);
  EXPECT_EQ(log.warnings.entries()[0].text,
            "communications that do not tell their operation, size, type or group are not "
            "compared");
  EXPECT_EQ(log.warnings.entries()[0].count, 2);
}

TEST(KinetoLog, ArrowsOfTimelinesJoinCollectives) {
  const std::string text = R"({"traceEvents": [
    {"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "tp"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "tp"}},
    {"ph": "X", "name": "sum", "cat": "allreduce", "pid": 0, "tid": 1, "ts": 10, "dur": 20},
    {"ph": "X", "name": "sum", "cat": "allreduce", "pid": 1, "tid": 1, "ts": 15, "dur": 15},
    {"ph": "X", "name": "sum", "cat": "allreduce", "pid": 2, "tid": 1, "ts": 15, "dur": 15},
    {"ph": "s", "name": "flow", "cat": "flow", "id": 0, "pid": 1, "tid": 1, "ts": 15},
    {"ph": "f", "bp": "e", "name": "flow", "cat": "flow", "id": 0, "pid": 0, "tid": 1, "ts": 29}]})";
  const PhysicalLog log = read_log(text, "timeline.json");
  ASSERT_EQ(log.ops.size(), 3U);
  EXPECT_EQ(log.groups.at(static_cast<std::size_t>(log.ops[0].group)), "tp");
  EXPECT_EQ(log.ops[0].occurrence, log.ops[1].occurrence);
  EXPECT_EQ(log.ops[0].occurrence, 0);
  EXPECT_EQ(log.ops[2].occurrence, -1);
}

TEST(KinetoLog, CallsOnTheHostAreNoCommunicationBesideTheirKernels) {
  PhysicalLog log;
  log.ops = {{.kind = OpKind::kCommunication}, {.kind = OpKind::kCommunication}};
  keep_kernels_of_calls(log, {0});
  EXPECT_EQ(log.ops[0].kind, OpKind::kHost);
  EXPECT_EQ(log.ops[1].kind, OpKind::kCommunication);
  log.ops = {{.kind = OpKind::kCommunication}};
  keep_kernels_of_calls(log, {0});  // nothing else tells of it
  EXPECT_EQ(log.ops[0].kind, OpKind::kCommunication);
}

}  // namespace
}  // namespace lockstep::kineto_log_test
