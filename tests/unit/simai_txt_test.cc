#include "workloads/simai_txt.h"

#include <string>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

const std::string kTraining =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 2 pp: 4 vpp: 3 ga: 6 "
    "all_gpus: 64 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 4194304.0\n"
    "3\n"
    "attention_column\t-1\t5\tALLGATHER\t100\t6\tREDUCESCATTER\t0\t7\tNONE\t0\t100\n"
    "mlp_moelayer\t-1\t1\tALLTOALL_EP\t200\t1\tALLTOALL_EP\t300\t1\tNONE\t0\t100\n"
    "grads\t-1\t1\tNONE\t4096\t1\tNONE\t0\t1\tALLGATHER_DP_EP\t400\t100\n";

WorkloadJob read_job(const std::string& text, Warnings* warnings = nullptr) {
  return read_simai_txt(text, "case.txt", warnings).jobs.at(0);
}

LayerTable read_table(const std::string& text) { return std::get<LayerTable>(read_job(text).work); }

TEST(SimaiTxt, ReadsEveryColumnOfTheTrainingForm) {
  const WorkloadJob job = read_job(kTraining);
  EXPECT_EQ(job.name, "case");
  EXPECT_EQ(job.parallel, (Parallelism{.gpus = 64, .tp = 8, .ep = 2, .pp = 4, .vpp = 3, .ga = 6}));
  const auto& table = std::get<LayerTable>(job.work);
  EXPECT_EQ(table.pp_comm_bytes, 4194304);
  EXPECT_EQ(table.names, (std::vector<std::string>{"attention_column", "mlp_moelayer", "grads"}));
  ASSERT_EQ(table.layers.size(), 3U);
  EXPECT_EQ(table.layers[0],
            (Layer{.name = 0,
                   .dependency = -1,
                   .forward = {Time::ns(5), Bytes(100), CommType::kAllGather, GroupKind::kTp},
                   .input_grad = {Time::ns(6), Bytes(0), CommType::kReduceScatter, GroupKind::kTp},
                   .weight_grad = {Time::ns(7), Bytes(0), CommType::kNone, GroupKind::kDp},
                   .update = Time::ns(100)}));
  EXPECT_EQ(table.layers[1].input_grad,
            (LayerPhase{Time::ns(1), Bytes(300), CommType::kAllToAll, GroupKind::kEp}));
  EXPECT_EQ(table.layers[2].forward,
            (LayerPhase{Time::ns(1), Bytes(4096), CommType::kNone, GroupKind::kTp}));
  EXPECT_EQ(table.layers[2].weight_grad,
            (LayerPhase{Time::ns(1), Bytes(400), CommType::kAllGather, GroupKind::kDpEp}));
}

TEST(SimaiTxt, WritesBackByteByByte) {
  EXPECT_EQ(to_simai_txt(read_simai_txt(kTraining, "case.txt")), kTraining);
}

TEST(SimaiTxt, BlanksLineEndsAndTheLastNewlineDoNotMatter) {
  std::string loose;
  for (const char c : kTraining) {
    loose += c == '\t' ? " \t  " : c == '\n' ? " \r\n\r\n" : std::string(1, c);
  }
  loose = "\n  " + loose;
  EXPECT_EQ(read_table(loose), read_table(kTraining));
  while (loose.back() == '\n' || loose.back() == '\r' || loose.back() == ' ') {
    loose.pop_back();
    EXPECT_EQ(read_table(loose), read_table(kTraining));
  }
}

}  // namespace
}  // namespace lockstep
