// The layout of SimAI's ns-3 mode: every stored file is taken apart into a StepResult and must come
// out again byte by byte.
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/text.h"
#include "report/end_to_end_csv.h"
#include "tests/support/reference.h"
#include "workloads/simai_txt.h"

namespace lockstep::simai_ns3_csv_test {
namespace {

namespace fs = std::filesystem;

Time us_field(std::string_view text) {
  return Time::ns(std::llround(to_double(text).value() * 1000));
}

std::int32_t group_size(const LayerPhase& phase, const Parallelism& p, bool weight_grad) {
  const std::int64_t dp = p.gpus / (p.tp * p.pp);
  const std::int64_t size = weight_grad ? (phase.group == GroupKind::kDpEp ? dp / p.ep : dp)
                                        : (phase.group == GroupKind::kEp ? p.ep : p.tp);
  return static_cast<std::int32_t>(size);
}

StepResult take_apart(const std::string& csv, const WorkloadJob& job) {
  StepResult result;
  result.flavour = "simai";
  result.parallel = job.parallel;
  const LayerTable& table = std::get<LayerTable>(job.work);
  result.names = table.names;
  const auto lines = split(csv, '\n');
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    const auto fields = split(lines[3 + i], ',');
    const Layer& in = table.layers[i];
    LayerResult out;
    out.name = in.name;
    const auto fill = [&](PhaseResult& to, const LayerPhase& from, std::size_t column) {
      to.comm_type = from.comm;
      to.group = from.group;
      to.bytes = from.bytes;
      to.group_size = group_size(from, job.parallel, column == 1);
      to.compute = us_field(fields[2 + column]);
      to.exposed = us_field(fields[5 + column]);
      to.comm = us_field(fields[8 + 3 * column]);
    };
    fill(out.forward, in.forward, 0);
    fill(out.weight_grad, in.weight_grad, 1);
    fill(out.input_grad, in.input_grad, 2);
    result.layers.push_back(out);
    result.total = us_field(fields[17]);
  }
  return result;
}

TEST(SimaiNs3Csv, EveryFileByteByByte) {
  LOCKSTEP_NEEDS_REFERENCE();
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(testing::reference_dir() + "/simai")) {
    const fs::path file = entry.path() / "ncclFlowModel_EndToEnd.csv";
    if (!fs::exists(file) || fs::file_size(file) == 0) {
      continue;
    }
    SCOPED_TRACE(file);
    const std::string csv = testing::slurp(file);
    const Workload workload =
        read_simai_txt(testing::slurp(entry.path() / "workload.txt"), "workload.txt");
    EXPECT_EQ(end_to_end_csv(take_apart(csv, workload.jobs.front()), EndToEndLayout::kNs3,
                             "ncclFlowModel_"),
              csv);
    ++cases;
  }
  EXPECT_GE(cases, 20);
}

}  // namespace
}  // namespace lockstep::simai_ns3_csv_test
