// The readers of logs, on small files that are written by hand (tests/fuzz/corpus).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "trace/aicb_bandwidth.h"
#include "trace/log_reader.h"

namespace lockstep::log_readers_test {
namespace {

PhysicalLog corpus(const std::string& name) {
  return read_logs(LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus/" + name).at(0);
}

const std::string& name_of(const PhysicalLog& log, const OpRow& row) {
  return log.names.at(static_cast<std::size_t>(row.name));
}

TEST(LogReaders, AicbCommLog) {
  const PhysicalLog log = corpus("aicb_comm_log/run.csv");
  EXPECT_EQ(log.format, "aicb-comm-log");
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.comms[0].op, CommType::kAllReduce);
  EXPECT_EQ(log.comms[0].ranks, 4);
  EXPECT_DOUBLE_EQ(log.comms[0].time_s, 0.01);
  // 1 GiB in 10 ms is 100 GiB/s; times 2 * 3 / 4.
  EXPECT_DOUBLE_EQ(log.comms[0].busbw_Bps, 150.0 * (1 << 30));
  // Left out in the file: 16 MiB in 0.5 ms is 31.25 GiB/s, times 7 / 8 is 27.34375.
  EXPECT_DOUBLE_EQ(log.comms[1].algbw_Bps, 31.25 * (1 << 30));
  EXPECT_DOUBLE_EQ(log.comms[1].busbw_Bps, 27.34 * (1 << 30));
  ASSERT_EQ(log.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(log.steps[0].time_s, 1.00025);
  EXPECT_EQ(log.ops.size(), 3U);  // the computation too
  EXPECT_EQ(log.warnings.total(), 1);
}

TEST(LogReaders, BandwidthTable) {
  const PhysicalLog log = corpus("bandwidth_table/report.md");
  ASSERT_EQ(log.comms.size(), 3U);
  EXPECT_EQ(log.comms[1].bytes, Bytes(131072));  // "132K"
  EXPECT_EQ(log.comms[2].op, CommType::kAllReduce);
  EXPECT_NEAR(log.comms[2].time_s, 1048576 * 1.75 / 43.7e9, 1e-12);
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

TEST(LogReaders, CollectiveCsv) {
  const PhysicalLog log = corpus("collective_csv/index.csv");
  ASSERT_EQ(log.settings.size(), 1U);
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.settings[0].nccl_version, "2.26.2");
  EXPECT_EQ(log.settings[0].servers, 2);
  EXPECT_EQ(log.warnings.total(), 1);  // two ranks on three servers
}

TEST(LogReaders, DeepSpeed) {
  const PhysicalLog log = corpus("deepspeed_comm/run.log");
  ASSERT_EQ(log.comms.size(), 2U);
  EXPECT_EQ(log.comms[0].bytes, Bytes(10004));  // 9.77 * 1024
  EXPECT_DOUBLE_EQ(log.comms[0].algbw_Bps, 0.08e9 / 8);
  EXPECT_EQ(log.warnings.total(), 1);
}

TEST(LogReaders, HorovodNestsPhases) {
  const PhysicalLog log = corpus("horovod/timeline.json");
  EXPECT_EQ(log.format, "horovod");
  ASSERT_EQ(log.ops.size(), 3U);
  EXPECT_EQ(name_of(log, log.ops[0]), "NEGOTIATE_ALLREDUCE allreduce.grad.0");
  EXPECT_EQ(log.ops[0].kind, OpKind::kHost);
  EXPECT_EQ(name_of(log, log.ops[2]), "NCCL_ALLREDUCE allreduce.grad.0");
  EXPECT_EQ(log.ops[2].stream, 1);
  EXPECT_DOUBLE_EQ(log.ops[2].duration_s, 100e-6);
}

TEST(LogReaders, KinetoKernelsWithSizes) {
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

TEST(LogReaders, MlperfSteps) {
  const PhysicalLog log = corpus("mlperf/result.txt");
  ASSERT_EQ(log.steps.size(), 2U);
  EXPECT_DOUBLE_EQ(log.steps[0].time_s, 0.5);
  EXPECT_DOUBLE_EQ(log.steps[1].time_s, 1.0);  // 640 samples of 64 in 10 s
  const PhysicalLog table = corpus("mlperf/steps.csv");
  EXPECT_EQ(table.steps.size(), 2U);
  EXPECT_EQ(table.warnings.total(), 1);
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

TEST(LogReaders, NdtimelineAndExecutionTraces) {
  const PhysicalLog trace = corpus("ndtimeline/two.csv");
  ASSERT_EQ(trace.ops.size(), 2U);
  EXPECT_EQ(trace.ops[1].op, CommType::kReduceScatter);
  const PhysicalLog et = corpus("pytorch_et/et.json");
  ASSERT_EQ(et.ops.size(), 2U);
  EXPECT_EQ(et.ops[1].op, CommType::kAllReduce);
  EXPECT_EQ(et.ops[1].bytes, 256);
  const PhysicalLog graph = corpus("pytorch_et/graph.json");
  EXPECT_EQ(graph.ops.at(0).op, CommType::kBroadcast);
  EXPECT_DOUBLE_EQ(graph.ops.at(0).duration_s, 28e-6);
}

TEST(LogReaders, AicbSizes) {
  EXPECT_EQ(aicb_size("2.25 GB"), 2415919104);
  EXPECT_EQ(aicb_size("0B"), 0);
  EXPECT_EQ(aicb_size("x"), 0);
  EXPECT_EQ(aicb_size("7 QB"), std::nullopt);
  EXPECT_EQ(aicb_size_text(16777216), "16.0 MB");
  EXPECT_EQ(aicb_size_text(4), "4.0 B");
}

}  // namespace
}  // namespace lockstep::log_readers_test
