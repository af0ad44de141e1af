#include "workloads/samples/samples.h"

#include <gtest/gtest.h>

#include "tests/support/reference.h"
#include "workloads/read_workload.h"
#include "workloads/samples/gpt.h"
#include "workloads/validate.h"

namespace lockstep::samples_test {
namespace {

const std::string kFolder = LOCKSTEP_SOURCE_DIR "/workloads/samples/";

TEST(Samples, FilesAreWhatTheProgramMakes) {
  for (const samples::Sample& sample : samples::all_samples()) {
    EXPECT_TRUE(testing::slurp(kFolder + sample.file) == sample.text)
        << sample.file << " differs: run make_samples workloads/samples, and review the change";
  }
}

TEST(Samples, AreValidAndReadWithoutWarnings) {
  for (const samples::Sample& sample : samples::all_samples()) {
    Warnings warnings;
    const Workload workload = read_workload(kFolder + sample.file, &warnings);
    EXPECT_NO_THROW(validate(workload)) << sample.file;
    EXPECT_EQ(warnings.total(), 0) << sample.file;
  }
}

// 2 x 2048 tokens x 5120 x (5120 + 2 x 5120) / 8 = 40,265,318,400 operations; over 445,230 a
// nanosecond: 90,436.9 ns.
TEST(Samples, ComputeTimeOfTheQkvProductByHand) {
  EXPECT_EQ(samples::compute_time(40'265'318'400), Time::ns(90'437));
}

// Parameters of the 13B model on one of 8 tensor-parallel ranks:
//   embedding 51200 / 8 x 5120 = 32,768,000; a layer 4 x 5120^2 / 8 + 2 x 5120 x 20480 / 8 =
//   39,321,600 and two norms 20,480; final norm 10,240.
//   32,768,000 + 40 x 39,342,080 + 10,240 = 1,606,461,440. BF16: 3,212,922,880 bytes.
TEST(Samples, GatheredBytesOf13BByHand) {
  const Workload workload = read_workload(kFolder + "gpt13b-128gpu-tp8.txt");
  const auto& table = std::get<LayerTable>(workload.jobs[0].work);
  EXPECT_EQ(table.layers[0].weight_grad,
            (LayerPhase{Time(), Bytes(3'212'922'880), CommType::kAllGather, GroupKind::kDp}));
  EXPECT_EQ(table.layers.size(), 2U + 4 * (1 + 40 * 4 + 1 + 3));
}

}  // namespace
}  // namespace lockstep::samples_test
