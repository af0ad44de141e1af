// The readers of logs, on small files that are written by hand (tests/fuzz/corpus).
#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "tests/support/small_logs.h"
#include "trace/log_reader.h"
#include "trace/rank_in_name.h"

namespace lockstep::log_readers_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using testing::corpus;
using testing::name_of;

TEST(LogReaders, BandwidthTable) {
  const PhysicalLog log = corpus("bandwidth_table/report.md");
  ASSERT_EQ(log.comms.size(), 3U);
  EXPECT_EQ(log.comms[1].bytes, Bytes(131072));  // "132K"
  EXPECT_EQ(log.comms[2].op, CommType::kAllReduce);
  EXPECT_NEAR(log.comms[2].time_s, 1048576 * 1.75 / 43.7e9, 1e-12);
}

// "131K" and "132K" are thousands of a power of two; sizes in equal steps are what they say.
TEST(LogReaders, BandwidthTablesInEqualSteps) {
  const PhysicalLog log = read_log(
      "| Size | Busbw (GB/s) |\n|---|---|\n| 131K | 9 |\n| 30M | 280 |\n| 33M | 281 |\n| 60M | 300 "
      "|\n| 70M | "
      "310 |\n| 537M | 400 |\n",
      "all_reduce-n1g8.md");
  ASSERT_EQ(log.comms.size(), 6U);
  EXPECT_EQ(log.comms[0].bytes, Bytes(131072));
  EXPECT_EQ(log.comms[1].bytes, Bytes(30 << 20));
  EXPECT_EQ(log.comms[2].bytes, Bytes(32 << 20));
  EXPECT_EQ(log.comms[3].bytes, Bytes(60 << 20));
  EXPECT_EQ(log.comms[4].bytes, Bytes(70 << 20));
  EXPECT_EQ(log.comms[5].bytes, Bytes(512 << 20));
}

// 64 MiB in 1 ms on 8 GPUs: 67.11 GB/s, which is 62.5 GiB/s or 536.9 Gb/s, 117.4 GB/s on the bus.
TEST(LogReaders, BandwidthTablesSayWhichAndInWhatUnit) {
  const auto read = [](const std::string& text) {
    return read_log("All-reduce on one server\n" + text, "report-n1g8.md");
  };
  for (const char* table :
       {"| Size | Algorithm bandwidth (GB/s) |\n|---|---|\n| 64M | 67.10886 |\n",
        "| Message size (MB) | AlgBw (Gbps) |\n|---|---|\n| 64 | 536.8709 |\n",
        "| algbw (Gb/s) | size |\n|---|---|\n| 536.8709 | 67,108,864 |\n",
        "| Size (KiB) | Bus bandwidth [GiB/s] |\n|---|---|\n| 65536.0 | 109.375 |\n",
        "| Size | # | Algbw (GB/s) | Busbw (MB/s) |\n|:--|--|--|--|\n| 64M | 2 | 1 | 117440.5 "
        "|\n"}) {
    const PhysicalLog log = read(table);
    ASSERT_EQ(log.comms.size(), 1U) << table;
    EXPECT_EQ(log.comms[0].bytes, Bytes(64 << 20)) << table;
    EXPECT_NEAR(log.comms[0].time_s, 1e-3, 1e-8) << table;
    EXPECT_NEAR(log.comms[0].busbw_Bps, 117.4405e9, 1e5) << table;
    EXPECT_EQ(log.warnings.total(), 0) << table;
  }
  const PhysicalLog several = read(
      "| Size | A (GB/s) | B (GB/s) |\n|---|---|---|\n| 64M | 117.4405 | 1 |\n| 1X | 2 | 3 |\n");
  EXPECT_NEAR(several.comms.at(0).time_s, 1e-3, 1e-8);
  EXPECT_EQ(several.warnings.entries().size(), 3U);  // which, several, a row without a size
  // A table each has the operation that stands before it.
  const PhysicalLog two = read(
      "| Size | busbw (GB/s) |\n|---|---|\n| 64M | 117.4405 |\n\nAllGather\n\n| Size | busbw "
      "(GB/s) |\n"
      "|---|---|\n| 64M | 58.72026 |\n");
  ASSERT_EQ(two.comms.size(), 2U);
  EXPECT_EQ(two.comms[0].op, CommType::kAllReduce);
  EXPECT_EQ(two.comms[1].op, CommType::kAllGather);
  EXPECT_NEAR(two.comms[1].time_s, 1e-3, 1e-8);
  EXPECT_EQ(two.settings.at(1).id, "report-n1g8.md#2");
  const std::string nameless = "| Size | busbw (GB/s) |\n|---|---|\n| 64M | 1 |\n";
  EXPECT_THROW(read_log(nameless, "report.md"), Error);
  // Tables beside one that can be read, and numbers that are not clear, are told.
  const PhysicalLog some = read_log("| Batch size | NVLink GB/s |\n| n/a | 900 |\n\n" + nameless +
                                        "\nAllReduce\n\n| Size (KiB) | busbw (GB/s) |\n"
                                        "| 1,024 | 117.4405 |\n| 1,5 | 100 |\n",
                                    "report.md");
  ASSERT_EQ(some.comms.size(), 1U);
  EXPECT_EQ(some.comms[0].bytes, Bytes(1 << 20));
  EXPECT_EQ(some.comms[0].op, CommType::kAllReduce);
}

TEST(LogReaders, BytePsPairsStagesWithTheirTotal) {
  const PhysicalLog log = corpus("byteps/comm.json");
  EXPECT_EQ(log.format, "byteps");
  ASSERT_EQ(log.ops.size(), 4U);
  EXPECT_EQ(name_of(log, log.ops[0]), "Comm.gradient_0");
  EXPECT_EQ(name_of(log, log.ops[1]), "Comm.gradient_0.PUSH");
  EXPECT_DOUBLE_EQ(log.ops[0].duration_s, 500e-6);
  EXPECT_EQ(log.ops[1].stream, 65537);
  ASSERT_EQ(log.warnings.entries().size(), 1U);  // the last push
  EXPECT_EQ(log.warnings.entries()[0].text, "stages that lie in no total of their tensor");
}

// As BytePS writes it: the totals of all steps first, so that the file's head shows no stage.
TEST(LogReaders, BytePsOfManySteps) {
  const PhysicalLog log = corpus("byteps/steps.json");
  EXPECT_EQ(log.format, "byteps");
  ASSERT_EQ(log.ops.size(), 24U * 3);
  EXPECT_EQ(log.warnings.total(), 0);
  EXPECT_EQ(name_of(log, log.ops[0]), "Comm.byteps_push_pull.layer1.weight");
  EXPECT_DOUBLE_EQ(log.ops[0].duration_s, 9e-3);
  EXPECT_EQ(log.ops[0].kind, OpKind::kWhole);  // a total is its stages
  EXPECT_EQ(log.ops[1].kind, OpKind::kCommunication);
  EXPECT_EQ(name_of(log, log.ops[1]), "Comm.byteps_push_pull.layer1.weight.PUSH");
  EXPECT_NEAR(log.ops[2].begin_s, 4.5e-3, 1e-9);
}

TEST(LogReaders, ChakraWholeAndCutOff) {
  const PhysicalLog log = corpus("chakra_et/two.3.et");
  EXPECT_EQ(log.format, "chakra-et");
  ASSERT_EQ(log.ops.size(), 2U);
  EXPECT_EQ(log.ops[0].rank, 3);
  EXPECT_EQ(log.ops[1].op, CommType::kAllReduce);
  EXPECT_EQ(log.ops[1].bytes, 4096);
  EXPECT_DOUBLE_EQ(log.ops[1].duration_s, 30e-6);
  const PhysicalLog cut = corpus("chakra_et/cut.et");
  EXPECT_EQ(cut.ops.size(), 1U);
  EXPECT_EQ(cut.warnings.total(), 1);
}

// A load, a metadata node, a barrier of group 1, a reduce-scatter of group 0, an all-reduce without
// a group, and a store of the host.
TEST(LogReaders, ChakraGroupsStreamsAndCopies) {
  const PhysicalLog log = corpus("chakra_et/groups.0.et");
  ASSERT_EQ(log.ops.size(), 5U);
  EXPECT_EQ(log.ops[0].kind, OpKind::kCopy);
  EXPECT_EQ(log.ops[0].stream, 7);
  EXPECT_EQ(log.ops[1].op, CommType::kBarrier);
  EXPECT_EQ(log.groups.at(static_cast<std::size_t>(log.ops[1].group)), "1");
  EXPECT_EQ(log.ops[1].stream, 20);
  EXPECT_DOUBLE_EQ(log.ops[1].begin_s, 10e-6);
  EXPECT_EQ(log.ops[2].op, CommType::kReduceScatter);
  EXPECT_EQ(log.groups.at(static_cast<std::size_t>(log.ops[2].group)), "0");
  EXPECT_EQ(log.ops[2].stream, 0);
  EXPECT_EQ(log.ops[3].group, -1);
  EXPECT_EQ(log.ops[4].kind, OpKind::kHost);
}

TEST(LogReaders, CollectiveCsv) {
  const PhysicalLog log = corpus("collective_csv/index.csv");
  ASSERT_EQ(log.settings.size(), 1U);
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.settings[0].nccl_version, "2.26.2");
  EXPECT_EQ(log.settings[0].servers, 2);
  EXPECT_EQ(log.warnings.total(), 1);  // two ranks on three servers
}

TEST(LogReaders, CollectiveCsvRowsOfOtherShapesAreOtherTables) {
  for (const std::string id : {"", "a,"}) {
    const PhysicalLog log = read_log(
        (id.empty() ? "" : "id,") + std::string("op,gpus,nodes,gpu_type,bytes,time_us\n") + id +
            "all_reduce,16,2,H100,67108864,600\n" + id + "all_reduce,16,16,H100,67108864,3000\n" +
            id + "all_reduce,16,2,H100,134217728,1200\n",
        "t.csv");
    ASSERT_EQ(log.settings.size(), 2U);
    EXPECT_EQ(log.settings[0].servers, 2);
    EXPECT_EQ(log.settings[1].servers, 16);
    EXPECT_EQ(log.comms[2].setting, 0);
  }
}

// vTrain's form: nanoseconds, the operation in the file's name.
TEST(LogReaders, CollectiveCsvWithoutIdOrOp) {
  const std::string text =
      "# measured\ngpu,gpus,bytes,time_ns,busbw_GBps\na100,2,1048576,45100,23.25\n"
      "a100,4,1048576,50000,31.46\n";
  const PhysicalLog log = read_log(text, "nccl_allreduce.csv");
  EXPECT_EQ(log.format, "collective-csv");
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.comms[0].op, CommType::kAllReduce);
  EXPECT_DOUBLE_EQ(log.comms[0].time_s, 45.1e-6);
  EXPECT_EQ(log.comms[0].line, 3);
  ASSERT_EQ(log.settings.size(), 2U);
  EXPECT_EQ(log.settings[1].id, "allreduce 4 x a100");
  EXPECT_EQ(log.settings[1].ranks, 4);
  EXPECT_EQ(log.settings[1].servers, 0);
  EXPECT_THROW(read_log(text, "nccl.csv"), Error);
}

TEST(LogReaders, HorovodNestsPhases) {
  const PhysicalLog log = corpus("horovod/timeline.json");
  EXPECT_EQ(log.format, "horovod");
  ASSERT_EQ(log.ops.size(), 3U);
  EXPECT_EQ(name_of(log, log.ops[0]), "NEGOTIATE_ALLREDUCE allreduce.grad.0");
  EXPECT_EQ(log.ops[0].kind, OpKind::kWait);
  EXPECT_EQ(name_of(log, log.ops[2]), "NCCL_ALLREDUCE allreduce.grad.0");
  EXPECT_EQ(log.ops[2].stream, 1);
  EXPECT_DOUBLE_EQ(log.ops[2].duration_s, 100e-6);
  EXPECT_EQ(log.ops[2].kind, OpKind::kCommunication);
  EXPECT_EQ(log.ops[1].kind, OpKind::kWhole);  // ALLREDUCE is its phases
}

// Phases that touch are not at the same time, whatever the sum of begin and duration rounds to; and
// a rank's file may tell which one it is of.
TEST(LogReaders, HorovodsPhasesThatTouch) {
  std::string text = R"([{"ph": "X", "name": "NEGOTIATE_ALLREDUCE", "ts": 0, "dur": 9, "pid": 1})";
  for (int i = 0; i < 100; ++i) {
    text += fmt::format(R"(,{{"ph": "X", "name": "WAIT_FOR_DATA", "ts": {}, "dur": 7, "pid": 1}})",
                        1'000'003 + 7 * i);
  }
  const PhysicalLog log = read_log(text + "]", "rank2.json");
  EXPECT_EQ(log.warnings.total(), 0);
  EXPECT_EQ(log.ops.at(0).rank, 2);
}

// Chakra's trace_link lays the times of PyTorch's profiler beside the nodes.
TEST(LogReaders, LinkedTracesHaveTheTimesOfTheGpu) {
  const PhysicalLog log = read_log(
      R"({"schema": "1.0.2-chakra.0.0.4", "nodes": [
      {"id": 2, "name": "aten::mm", "ctrl_deps": 1, "ts": 1000, "inclusive_dur": 40, "exclusive_dur": 30},
      {"id": 3, "name": "gemm", "ctrl_deps": 2, "cat": "kernel", "ts": 1050.5, "exclusive_dur": 500, "stream": 7},
      {"id": 4, "name": "Memcpy DtoD", "ctrl_deps": 2, "cat": "gpu_memcpy", "ts": 1600, "exclusive_dur": 8}]})",
      "et_rank1.json");
  ASSERT_EQ(log.ops.size(), 3U);
  EXPECT_EQ(log.ops[0].kind, OpKind::kHost);
  EXPECT_EQ(log.ops[1].kind, OpKind::kCompute);
  EXPECT_DOUBLE_EQ(log.ops[1].begin_s, 1050.5e-6);
  EXPECT_DOUBLE_EQ(log.ops[1].duration_s, 500e-6);
  EXPECT_EQ(log.ops[2].kind, OpKind::kCopy);
  EXPECT_EQ(log.warnings.total(), 0);
  const PhysicalLog timeless =
      read_log(R"({"schema": "1", "nodes": [{"id": 2, "name": "aten::mm"}]})", "et.json");
  EXPECT_EQ(timeless.warnings.entries().at(0).text, "no node tells how long it takes");
}

// Two tensors that are fused have a phase each of the one all-reduce.
TEST(LogReaders, HorovodsFusedTensorsAreTold) {
  const auto timeline = [](int second) {
    return read_log(
        fmt::format(
            R"([{{"name": "process_name", "ph": "M", "pid": 1, "args": {{"name": "grad.0"}}}},
        {{"ph": "B", "name": "NCCL_ALLREDUCE", "ts": 100, "pid": 1}},
        {{"ph": "E", "ts": 200, "pid": 1}},
        {{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 110, "pid": 2}},
        {{"ph": "E", "ts": 120, "pid": 2}},
        {{"ph": "B", "name": "NCCL_ALLREDUCE", "ts": {}, "pid": 2}},
        {{"ph": "E", "ts": {}, "pid": 2}}])",
            second, second + 100),
        "timeline.json");
  };
  EXPECT_EQ(timeline(200).warnings.total(), 0);
  EXPECT_EQ(timeline(102).warnings.total(), 1);
}

TEST(LogReaders, MlperfSteps) {
  const PhysicalLog log = corpus("mlperf/result.txt");
  ASSERT_EQ(log.steps.size(), 1U);  // the block is the same time
  EXPECT_DOUBLE_EQ(log.steps[0].time_s, 0.5);
  std::string text(FileText(LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus/mlperf/result.txt").view());
  text += R"(:::MLLOG {"time_ms": 20000, "key": "run_start", "value": null}
:::MLLOG {"time_ms": 20000, "key": "block_start", "metadata": {"samples_count": 0}}
:::MLLOG {"time_ms": 30000, "key": "block_stop", "metadata": {"samples_count": 640}}
)";
  const PhysicalLog second = read_log(text, "result.txt");
  ASSERT_EQ(second.steps.size(), 2U);
  EXPECT_EQ(second.steps[1].run, 1);
  EXPECT_DOUBLE_EQ(second.steps[1].time_s, 1.0);  // 640 samples of 64 in 10 s
  const PhysicalLog table = corpus("mlperf/steps.csv");
  EXPECT_EQ(table.steps.size(), 2U);
  EXPECT_EQ(table.warnings.total(), 1);
}

TEST(LogReaders, MegatronIterations) {
  const PhysicalLog log = corpus("megatron/train.log");
  EXPECT_EQ(log.format, "megatron");
  ASSERT_EQ(log.steps.size(), 9U);
  EXPECT_EQ(log.steps[0].step, 1);
  EXPECT_DOUBLE_EQ(log.steps[0].time_s, 4.3125);
  EXPECT_EQ(log.steps[8].step, 9);
  EXPECT_DOUBLE_EQ(log.steps[8].time_s, 0.042);
  EXPECT_THAT(log.groups,
              ::testing::ElementsAre("start 1, global batch 32", "start 2, global batch 32"));
  EXPECT_EQ(log.steps[2].run, 0);
  EXPECT_EQ(log.steps[3].run, 1);                          // the job was started again
  EXPECT_EQ(log.facts.at("max_allocated_MiB"), "1721.5");  // of two ranks
  EXPECT_EQ(log.warnings.total(), 1);                      // the last line is cut
}

TEST(LogReaders, MegatronLinesOfOtherReleases) {
  const PhysicalLog log = read_log(
      " iteration       10/  500000 | elapsed time per iteration (ms): 612.5 | learning rate "
      "1.5E-04 "
      "| lm loss 1.0E+01 |\n"
      "iteration 20/infinity | consumed samples: 80 | elapsed time per iteration (ms): 610.0 | "
      "global "
      "batch size: 4 |\n"
      "[INFO ] [--------trainer.py:2560] : iteration 4408/ 5000 | elapsed time per iteration (ms): "
      "13100.0/13240.9 | global batch size: 128 |\n",
      "old.log");
  ASSERT_EQ(log.steps.size(), 3U);
  EXPECT_DOUBLE_EQ(log.steps[2].time_s, 13.1);
  EXPECT_EQ(log.steps[0].step, 10);
  EXPECT_DOUBLE_EQ(log.steps[0].time_s, 0.6125);
  EXPECT_EQ(log.groups[static_cast<std::size_t>(log.steps[0].run)], "start 1");
  EXPECT_EQ(log.groups[static_cast<std::size_t>(log.steps[1].run)], "start 1, global batch 4");
}

TEST(LogReaders, NcclTestsJson) {
  const PhysicalLog log = corpus("nccl_tests_json/run.json");
  EXPECT_EQ(log.format, "nccl-tests-json");
  ASSERT_EQ(log.comms.size(), 1U);  // "nan" is no time
  EXPECT_EQ(log.comms[0].op, CommType::kAllReduce);
  EXPECT_EQ(log.settings[0].servers, 2);
  EXPECT_EQ(log.settings[0].nccl_version, "2.29.2");
  EXPECT_EQ(log.settings[0].env.at("NCCL_ALGO"), "Ring");
}

// A run that was killed: the last result is cut.
TEST(LogReaders, NcclTestsJsonWithoutItsEnd) {
  const PhysicalLog log = read_log(
      R"({"args": ["all_reduce_perf"], "nccl_version": 22902, "results": [
{"size": 1024, "type": "float", "out_of_place": {"time": 10.5}, "in_place": {"time": 11}},
{"size": 2048, "type": "float", "out_of_place": {"time": 12.5, "alg_b)",
      "run.json");
  ASSERT_EQ(log.comms.size(), 3U);
  EXPECT_DOUBLE_EQ(log.comms[2].time_s, 12.5e-6);
  EXPECT_EQ(log.warnings.entries().at(0).text,
            "the document ends in the middle, as of a run that was stopped");
}

// As CSV and JSON, with and without MPI.
TEST(LogReaders, RcclTests) {
  const PhysicalLog log = corpus("rccl_tests/run.csv");
  EXPECT_EQ(log.format, "rccl-tests");
  ASSERT_EQ(log.comms.size(), 3U);
  EXPECT_EQ(log.comms[0].op, CommType::kAllReduce);
  EXPECT_EQ(log.comms[0].ranks, 16);
  EXPECT_EQ(log.comms[0].bytes, Bytes(1 << 20));
  EXPECT_DOUBLE_EQ(log.comms[0].time_s, 50e-6);
  EXPECT_DOUBLE_EQ(log.comms[0].busbw_Bps, 39.32e9);
  EXPECT_FALSE(log.comms[0].in_place);
  EXPECT_TRUE(log.comms[1].in_place);
  EXPECT_EQ(log.comms[1].wrong, 3);
  EXPECT_EQ(log.comms[1].line, 3);
  ASSERT_EQ(log.settings.size(), 2U);  // of two types
  EXPECT_EQ(log.settings[1].dtype, "half");
  EXPECT_EQ(log.settings[1].servers, 2);
  EXPECT_EQ(log.warnings.entries().at(0).text,
            "lines with too many or too few fields were passed over");
  const PhysicalLog one = corpus("rccl_tests/one.csv");
  ASSERT_EQ(one.comms.size(), 1U);
  EXPECT_EQ(one.comms[0].op, CommType::kAllToAll);
  EXPECT_EQ(one.comms[0].ranks, 8);
  EXPECT_EQ(one.settings.at(0).servers, 0);
  EXPECT_EQ(one.warnings.entries().at(0).text, "rows whose numbers make no sense were passed over");
  const PhysicalLog json = corpus("rccl_tests/run.json");
  EXPECT_EQ(json.format, "rccl-tests");
  ASSERT_EQ(json.comms.size(), 2U);
  EXPECT_EQ(json.comms[1].op, CommType::kAllGather);
  EXPECT_EQ(json.comms[1].ranks, 16);
  EXPECT_EQ(json.settings.at(0).servers, 2);
  EXPECT_TRUE(json.comms[1].in_place);
  EXPECT_DOUBLE_EQ(json.comms[1].algbw_Bps, 26.21e9);
  // Some releases name no column of the nodes that they write.
  const PhysicalLog unnamed = read_log(
      "numCycle,collective,ranks,ranksPerNode,gpusPerRank,size,type,redop,inplace,time,algbw,"
      "busbw,#wrong\n0,Broadcast,2,16,8,1,1048576,float,none,0,50.00,20.97,20.97,0\n",
      "x.csv");
  ASSERT_EQ(unnamed.comms.size(), 1U);
  EXPECT_EQ(unnamed.comms[0].ranks, 16);
  EXPECT_EQ(unnamed.settings.at(0).servers, 2);
  EXPECT_THROW(read_log("numCycle,collective,gpus,size\n", "x.csv"), Error);
}

// 6 GiB in 60 ms, counted in 32 bits: once without the lost 4 GiB, once negative for want of a
// rate.
TEST(LogReaders, SizesPast32Bits) {
  const PhysicalLog json = read_log(
      R"({"args":["all_reduce_perf"],"env":[],"nccl_version":23007,"results":[
        {"size":2147483648,"out_of_place":{"time":64424.5,"alg_bw":100.0}},
        {"size":-2147483648,"out_of_place":{"time":64424.5}}]})",
      "run.json");
  ASSERT_EQ(json.comms.size(), 1U);
  EXPECT_EQ(json.comms[0].bytes, Bytes(6442450944));
  EXPECT_EQ(json.warnings.entries().size(), 2U);
  const PhysicalLog csv = read_log(
      "gpus,bytes,time_us,algbw_GBps\n8,2147483648,64424.5,100\n8,-2147483648,64424.5,\n"
      "8,2147483648,21474.8,100\n",
      "all_reduce.csv");
  ASSERT_EQ(csv.comms.size(), 2U);
  EXPECT_EQ(csv.comms[0].bytes, Bytes(6442450944));
  EXPECT_EQ(csv.comms[1].bytes, Bytes(2147483648));
  EXPECT_EQ(csv.warnings.entries().size(), 2U);
  // 6 GiB in 60 ms are 100 GiB/s.
  const PhysicalLog aicb = read_log(
      "comm_type,comm_group,comm_group_size,msg_size,_elapsed_time,algbw,busbw\n"
      "CommType.all_reduce,CommGroup.dp_group,8,2147483648,60,100.0,175.0\n"
      "CommType.all_reduce,CommGroup.dp_group,8,-2147483648,60,100.0,175.0\n"
      "CommType.all_reduce,CommGroup.dp_group,8,-2147483648,60,-33.33,-58.33\n",
      "run_log.csv");
  ASSERT_EQ(aicb.comms.size(), 2U);
  EXPECT_EQ(aicb.comms[0].bytes, Bytes(6442450944));
  EXPECT_EQ(aicb.comms[1].bytes, Bytes(6442450944));
  EXPECT_EQ(aicb.ops.at(1).bytes, 6442450944);
  EXPECT_EQ(aicb.warnings.entries().size(), 2U);
}

// Each process lists its first device; of a split communicator the first group's ranks meet.
TEST(LogReaders, NcclTestsJsonCountsTheRanks) {
  const auto read = [](const std::string& config) {
    return read_log(
        R"({"version":2,"args":["all_reduce_perf","-g","8"],"env":[],"nccl_version":23007,"config":)" +
            config +
            R"(,"results":[{"size":67108864,"type":"float","out_of_place":{"time":600.0,"alg_bw":111.8,"bus_bw":209.7}}]})",
        "run.json");
  };
  const PhysicalLog first = read(
      R"({"nthreads":1,"ngpus":8,"devices":[{"rank":0,"group":0,"pid":1,"hostname":"a"},{"rank":8,"group":0,"pid":2,"hostname":"b"}]})");
  EXPECT_EQ(first.comms.at(0).ranks, 16);
  EXPECT_EQ(first.settings.at(0).servers, 2);
  const PhysicalLog all = read(
      R"({"nthreads":1,"ngpus":2,"devices":[{"rank":0,"group":0,"pid":1,"hostname":"a"},{"rank":1,"group":0,"pid":1,"hostname":"a"}]})");
  EXPECT_EQ(all.comms.at(0).ranks, 2);
  const PhysicalLog split = read(
      R"({"nthreads":1,"ngpus":1,"devices":[{"rank":0,"group":0,"pid":1,"hostname":"a"},{"rank":1,"group":1,"pid":2,"hostname":"a"},{"rank":2,"group":0,"pid":3,"hostname":"b"},{"rank":3,"group":1,"pid":4,"hostname":"b"}]})");
  EXPECT_EQ(split.comms.at(0).ranks, 2);
  EXPECT_EQ(split.settings.at(0).servers, 2);
  EXPECT_EQ(split.warnings.total(), 1);
}

TEST(LogReaders, RanksInNames) {
  for (const char* name :
       {"rank_3.json", "rank3.json.gz", "rank.3.et", "per_rank_traces.3.et", "chakra.3.et",
        "et_rank3.et", "trace_3.et", "worker3.chakra.et", "gpu-3.et", "a/rank7/trace.3.et"}) {
    EXPECT_EQ(rank_in_name(name), 3) << name;
  }
  for (const char* name : {"gpuhost_4711.170000.pt.trace.json", "trace.et", "h100.json",
                           "rank_99999999999.et", "frank.json"}) {
    EXPECT_EQ(rank_in_name(name), -1) << name;
  }
}

TEST(LogReaders, PytorchExecutionTraces) {
  const PhysicalLog et = corpus("pytorch_et/et.json");
  ASSERT_EQ(et.ops.size(), 2U);
  EXPECT_EQ(et.ops[1].op, CommType::kAllReduce);
  EXPECT_EQ(et.ops[1].bytes, 256);
  // A call within a call is one communication, with the size that one of them tells.
  const PhysicalLog nested = read_log(
      R"({"schema": "1.1.1-chakra.0.0.4", "nodes": [
        {"id": 2, "name": "c10d::allreduce_", "ctrl_deps": 1},
        {"id": 3, "name": "aten::detach", "ctrl_deps": 2},
        {"id": 4, "name": "record_param_comms", "ctrl_deps": 3,
         "inputs": {"values": [[[5, 6, 0, 1024, 4, "cuda:0"]]]}},
        {"id": 5, "name": "record_param_comms", "ctrl_deps": 1,
         "inputs": {"values": [[[5, 6, 0, 256, 4, "cuda:0"]]]}}]})",
      "et.json");
  ASSERT_EQ(nested.ops.size(), 4U);
  EXPECT_EQ(nested.ops[0].kind, OpKind::kCommunication);
  EXPECT_EQ(nested.ops[0].bytes, 4096);
  EXPECT_EQ(nested.ops[2].kind, OpKind::kHost);
  EXPECT_EQ(nested.ops[3].kind, OpKind::kCommunication);
  EXPECT_EQ(nested.ops[3].bytes, 1024);
  // 50 us, of which 20 and 10 are within, then 20 and 100: no time counts twice.
  const PhysicalLog timed = read_log(
      R"({"schema": "1.1.1-chakra.0.0.4", "nodes": [
        {"id": 5, "name": "aten::detach", "ctrl_deps": 3, "runtime": 10},
        {"id": 3, "name": "c10d::allreduce_", "ctrl_deps": 2, "runtime": 50},
        {"id": 4, "name": "record_param_comms", "ctrl_deps": 3, "runtime": 20},
        {"id": 6, "name": "record_param_comms", "ctrl_deps": 2, "runtime": 20},
        {"id": 7, "name": "aten::mm", "ctrl_deps": 2, "runtime": 100}]})",
      "et.json");
  std::vector<double> begins;
  for (const OpRow& op : timed.ops) {
    begins.push_back(std::round(op.begin_s * 1e6));
  }
  EXPECT_EQ(begins, (std::vector<double>{20, 0, 0, 50, 70}));
  const PhysicalLog graph = corpus("pytorch_et/graph.json");
  EXPECT_EQ(graph.ops.at(0).op, CommType::kBroadcast);
  EXPECT_DOUBLE_EQ(graph.ops.at(0).duration_s, 28e-6);
}

/// A folder that is gone with the object.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("lockstep-logs-" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
  }
};

TEST(LogReaders, TheTraceFolderOfBytepsIsItsRanks) {
  const Folder folder;
  EXPECT_THROW(read_logs(folder.path.string()), Error);
  const FileText file(LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus/byteps/steps.json");
  const std::string_view text = file.view();
  folder.write("10/comm.json", text);
  folder.write("2/comm.json", text);
  folder.write("notes/comm.json", "no");
  const std::vector<PhysicalLog> logs = read_logs(folder.path.string());
  ASSERT_EQ(logs.size(), 2U);
  EXPECT_EQ(logs[0].ops.at(0).rank, 2);
  EXPECT_EQ(logs[1].ops.at(0).rank, 10);
}

TEST(LogReaders, OtherPackingsAreRefusedWithAHint) {
  const Folder folder;
  for (const auto& [begin, name] : {std::pair<std::string, std::string>{"BZh91AY&SY", "bzip2"},
                                    {"\xFD"
                                     "7zXZ" +
                                         std::string(4, '\0'),
                                     "xz"},
                                    {"\x28\xB5\x2F\xFD and so on", "zstd"},
                                    {"PK\x03\x04 and so on", "zip"}}) {
    folder.write("packed", begin);
    try {
      read_logs((folder.path / "packed").string());
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "the file is packed by " + name);
    }
  }
}

// 2^63 ps are 106 days.
TEST(LogReaders, TimesThatNoRunHasAreRefused) {
  const auto problem = [](const std::string& text, const char* file) -> std::string {
    try {
      read_log(text, file);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto collective = [&](const char* ms) {
    return problem(
        "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,"
        "algbw,busbw,count\n"
        "CommType.all_reduce,CommGroup.tp_group,4,1024,x,None,None,," +
            std::string(ms) + ",1,1,1\n",
        "run_log.csv");
  };
  EXPECT_THAT(collective("1e308"), AllOf(HasSubstr("run_log.csv:2: time"), HasSubstr("1e+305 s")));
  EXPECT_THAT(collective("9.3e9"), HasSubstr("at most 106 days"));
  EXPECT_EQ(collective("9.1e9"), "no error");
  const auto events = [&](const char* begin, const char* length) {
    return problem(R"([{"ph": "X", "name": "NCCL_ALLREDUCE", "ts": 1, "dur": 5, "pid": 1},
{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 2, "pid": 2},
{"ph": "E", "ts": 3, "pid": 2},
{"ph": "X", "name": "NCCL_ALLREDUCE", "ts": )" +
                       std::string(begin) + R"(, "dur": )" + length + R"(, "pid": 3}])",
                   "h.json");
  };
  EXPECT_THAT(
      events("1e308", "5"),
      AllOf(HasSubstr("h.json: operation 2 (NCCL_ALLREDUCE 3): begin"), HasSubstr("106 days")));
  EXPECT_THAT(events("7", "1e300"), HasSubstr("h.json: operation 2 (NCCL_ALLREDUCE 3): duration"));
  EXPECT_EQ(events("7", "5"), "no error");
}

}  // namespace
}  // namespace lockstep::log_readers_test
