#include "workloads/simai_txt.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep::simai_txt_test {
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

// ---- first lines -------------------------------------------------------------------------------

const std::string kOneLayer = "\n1\nlayer\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tNONE\t0\t1\n";

TEST(SimaiTxtHeader, InferenceFormRoundTrips) {
  const std::string text =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 8 pp: 2 all_gpus: 32 mode: "
      "1 vpp: 1 ga: 1 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 40960" +
      kOneLayer;
  const WorkloadJob job = read_job(text);
  EXPECT_EQ(job.parallel, (Parallelism{.gpus = 32, .tp = 4, .ep = 8, .pp = 2}));
  EXPECT_EQ(std::get<LayerTable>(job.work).mode, 1);
  EXPECT_EQ(to_simai_txt(read_simai_txt(text, "")), text);
}

TEST(SimaiTxtHeader, MicroFormRoundTripsWithPythonsNone) {
  const std::string text =
      "MICRO\n2\n"
      "micro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tREDUCESCATTER\t4096\t1\n"
      "micro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tNone\t8192\t1\n";
  const WorkloadJob job = read_job(text);
  EXPECT_EQ(job.parallel, (Parallelism{.gpus = 0}));
  const auto& table = std::get<LayerTable>(job.work);
  EXPECT_EQ(table.policy, "MICRO");
  EXPECT_EQ(table.layers[1].weight_grad,
            (LayerPhase{Time::ns(1), Bytes(8192), CommType::kNone, GroupKind::kDp}));
  EXPECT_EQ(to_simai_txt(read_simai_txt(text, "")), text);
}

TEST(SimaiTxtHeader, OldSampleWithTabsAndFewKeys) {
  const WorkloadJob job = read_job(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 8 checkpoints: 0 "
      "checkpoint_initiates: 0\n1\n"
      "embedding_layer     -1 556000  BROADCAST   16777216      1       NONE 0        1      NONE  "
      " "
      "0      1 ");
  EXPECT_EQ(job.parallel, (Parallelism{.gpus = 0, .tp = 8}));
  EXPECT_EQ(std::get<LayerTable>(job.work).layers[0].forward,
            (LayerPhase{Time::us(556), Bytes(16777216), CommType::kBroadcast, GroupKind::kTp}));
}

TEST(SimaiTxtHeader, KeysMayStandInAnyOrder) {
  const WorkloadJob job = read_job(
      "HYBRID_TRANSFORMER pp_comm 12 all_gpus: 16 ga: 3 checkpoint_initiates: 1 0 vpp: 2 pp: 2 "
      "checkpoints: 2 0 0 ep: 2 model_parallel_NPU_group: 4" +
      kOneLayer);
  EXPECT_EQ(job.parallel, (Parallelism{.gpus = 16, .tp = 4, .ep = 2, .pp = 2, .vpp = 2, .ga = 3}));
  const auto& table = std::get<LayerTable>(job.work);
  EXPECT_EQ(table.pp_comm_bytes, 12);
  EXPECT_EQ(table.checkpoints, (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(table.checkpoint_initiates, (std::vector<std::int32_t>{0}));
}

TEST(SimaiTxtHeader, EverySpellingOfPpCommRoundTrips) {
  for (const std::string spelling :
       {"pp_comm: 4194304", "pp_comm: 4194304.0", "pp_comm: 291714.28571428574", "pp_comm 50331648",
        "pp_comm: 0.0", "pp_comm: 9007199254740992"}) {
    const std::string text = "HYBRID_TRANSFORMER_FWD_IN_BCKWD pp: 2 " + spelling + kOneLayer;
    EXPECT_EQ(to_simai_txt(read_simai_txt(text, "")), text);
  }
  // Another spelling of a number is read, and written as Python would.
  EXPECT_EQ(to_simai_txt(read_simai_txt("DATA pp_comm: 1e6" + kOneLayer, "")),
            "DATA pp_comm: 1000000.0" + kOneLayer);
}

TEST(SimaiTxtHeader, EveryPolicyIsKnown) {
  for (const std::string policy :
       {"DATA", "MODEL", "HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_DLRM",
        "HYBRID_DLRM_ENHANCED", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "MICRO",
        "DISTRIBUTED_INFERENCE"}) {
    EXPECT_EQ(read_table(policy + kOneLayer).policy, policy);
  }
}

TEST(SimaiTxtHeader, CustomizedLayersHaveAPolicyOfTheirOwn) {
  const std::string text =
      "HYBRID_CUSTOMIZED ga: 1\n2\n"
      "a\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tNONE\t0\t1\tDATA\n"
      "b\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tNONE\t0\t1\tMODEL\n";
  EXPECT_EQ(read_table(text).layer_policies, (std::vector<std::string>{"DATA", "MODEL"}));
  EXPECT_EQ(to_simai_txt(read_simai_txt(text, "")), text);
}

TEST(SimaiTxtHeader, UnknownWordsAreKeptWithAWarning) {
  const std::string text = "HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 3 all_gpu: 8" + kOneLayer;
  Warnings warnings;
  EXPECT_EQ(to_simai_txt(read_simai_txt(text, "dlrm.txt", &warnings)), text);
  ASSERT_EQ(warnings.entries().size(), 4U);
  EXPECT_EQ(warnings.entries()[0].text,
            "dlrm.txt:1: 'DLRM_LAST_BOTTOM_LAYER:' in the first line is not used");
  EXPECT_EQ(warnings.entries()[2].text,
            "dlrm.txt:1: 'all_gpu:' in the first line is not used; did you mean 'all_gpus:'?");
}

TEST(SimaiTxtHeader, WarnsOfValuesThatDoNotFitTogether) {
  Warnings warnings;
  read_job("HYBRID_TRANSFORMER pp: 4 model_parallel_NPU_group: 8 all_gpus: 48" + kOneLayer,
           &warnings);
  ASSERT_EQ(warnings.entries().size(), 2U);
  EXPECT_EQ(warnings.entries()[0].text, "case.txt:1: pp is 4, but pp_comm is 0");
  EXPECT_EQ(warnings.entries()[1].text,
            "case.txt:1: all_gpus (48) is not a multiple of tp x pp (32)");
}

// ---- the writer alone --------------------------------------------------------------------------

TEST(SimaiTxtWriter, ValuesAloneGiveAicbsTrainingForm) {
  LayerTable table;
  table.names = {"grad_gather"};
  table.layers = {{.name = 0,
                   .weight_grad = {Time::ns(1), Bytes(8), CommType::kAllGather, GroupKind::kDp},
                   .update = Time::ns(100)}};
  table.pp_comm_bytes = 291714.28571428574;
  Workload workload;
  workload.jobs.resize(1);
  workload.jobs[0].parallel = {.gpus = 64, .tp = 8, .ep = 2, .pp = 2, .vpp = 20, .ga = 0};
  workload.jobs[0].work = table;
  EXPECT_EQ(to_simai_txt(workload),
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 2 pp: 2 vpp: 20 ga: 0 "
            "all_gpus: 64 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 291714.28571428574\n"
            "1\n"
            "grad_gather\t-1\t0\tNONE\t0\t0\tNONE\t0\t1\tALLGATHER\t8\t100\n");
}

std::string write_error(const Workload& workload) {
  try {
    to_simai_txt(workload);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SimaiTxtWriter, RefusesWhatTheTextCannotHold) {
  Workload workload = read_simai_txt(kTraining, "case.txt");
  auto& table = std::get<LayerTable>(workload.jobs[0].work);
  const Layer good = table.layers[1];
  const std::string hint = "\n  hint: write the native JSON form instead";
  table.layers[1].forward.group = GroupKind::kDp;
  EXPECT_EQ(write_error(workload),
            "SimAI's text cannot hold this workload: layer 1 has the communication alltoall over "
            "dp in the forward or input-gradient columns" +
                hint);
  table.layers[1] = good;
  table.layers[1].update = Time::ps(1);
  EXPECT_EQ(write_error(workload),
            "SimAI's text cannot hold this workload: layer 1 takes 1 ps, which is no whole number "
            "of nanoseconds" +
                hint);
  table.layers[1] = good;
  table.names[2] = "two words";
  EXPECT_EQ(write_error(workload),
            "SimAI's text cannot hold this workload: the layer name 'two words' is no single word" +
                hint);
  workload.jobs.resize(2);
  EXPECT_EQ(write_error(workload), "SimAI's text cannot hold this workload: it has 2 jobs" + hint);
  workload.jobs.resize(1);
  workload.jobs[0].work = OpTable();
  EXPECT_EQ(write_error(workload),
            "SimAI's text cannot hold this workload: it is given rank by rank" + hint);
}

}  // namespace
}  // namespace lockstep::simai_txt_test
