#include <string>

#include <gtest/gtest.h>

#include "tests/property/random_workload.h"
#include "workloads/simai_txt.h"
#include "workloads/validate.h"
#include "workloads/workload_json.h"

namespace lockstep::workload_property_test {
namespace {

constexpr int kRounds = 500;

TEST(WorkloadProperty, SimaiTextReadsBackEqual) {
  Rng rng(1, "workload/simai");
  for (int round = 0; round < kRounds; ++round) {
    Workload workload;
    workload.jobs = {testing::random_layer_job(rng)};
    const std::string text = to_simai_txt(workload);
    const Workload again = read_simai_txt(text, "job.txt");
    ASSERT_EQ(again, workload) << text;
    ASSERT_NO_THROW(validate(again)) << text;
    ASSERT_EQ(to_simai_txt(again), text);
  }
}

// Odd but valid spellings take the reader's careful path; it must see the same as its fast one.
TEST(WorkloadProperty, FastAndCarefulPathAgree) {
  Rng rng(2, "workload/paths");
  for (int round = 0; round < kRounds; ++round) {
    Workload workload;
    workload.jobs = {testing::random_layer_job(rng)};
    const std::string text = to_simai_txt(workload);
    std::string odd;
    const std::size_t layers = text.find('\n', text.find('\n') + 1);
    for (std::size_t i = 0; i < text.size(); ++i) {
      odd += text[i];
      const bool number = i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
      if (i > layers && text[i] == '\t' && number) {
        odd += rng.below(2) == 0 ? "+" : "000000000000000000";
      }
    }
    ASSERT_EQ(read_simai_txt(odd, "job.txt"), workload) << odd;
  }
}

TEST(WorkloadProperty, HeaderFieldsThatAreNotListedAreWrittenWhereTheyMatter) {
  Rng rng(3, "workload/header");
  for (int round = 0; round < kRounds; ++round) {
    Workload workload;
    workload.jobs = {testing::random_layer_job(rng)};
    auto& table = std::get<LayerTable>(workload.jobs[0].work);
    auto& fields = table.header.fields;
    while (!fields.empty() && rng.below(4) != 0) {
      fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(rng.below(fields.size())));
    }
    Workload again = read_simai_txt(to_simai_txt(workload), "job.txt");
    std::get<LayerTable>(again.jobs[0].work).header.fields = fields;
    ASSERT_EQ(again, workload) << to_simai_txt(workload);
  }
}

TEST(WorkloadProperty, JsonReadsBackEqual) {
  Rng rng(4, "workload/json");
  for (int round = 0; round < kRounds; ++round) {
    Workload workload;
    for (std::uint64_t n = 1 + rng.below(3); n > 0; --n) {
      workload.jobs.push_back(rng.below(2) == 0 ? testing::random_layer_job(rng)
                                                : testing::random_op_job(rng));
      workload.jobs.back().name = "job \"" + std::to_string(n) + "\"\n";
      if (auto* table = std::get_if<LayerTable>(&workload.jobs.back().work)) {
        table->header = {};  // the JSON form does not keep it
      }
    }
    const std::string text = to_workload_json(workload);
    const Workload again = read_workload_json(text, "job.json");
    ASSERT_EQ(again, workload) << text;
    ASSERT_EQ(to_workload_json(again), text);
  }
}

}  // namespace
}  // namespace lockstep::workload_property_test
