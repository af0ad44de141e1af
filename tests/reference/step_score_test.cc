// Simulated steps against published step times on A100s, with the roofline alone and no tuning. The
// table that it prints is the score; the bounds pin its present figures.
//
// By default the rows that take little time: every tenth of vTrain's single-node set, its
// multi-node and SC'21's up to 128 GPUs, of one stage, up to 64 GPUs and 4 microbatches;
// Korthikanti's up to 8 GPUs. With LOCKSTEP_SCORE_ALL=1 every row.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "generator/compute/gpu_spec.h"
#include "generator/compute/roofline.h"
#include "generator/exact/exact_workload.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/tune.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/step_simulation.h"
#include "tests/support/exact_models.h"
#include "tests/support/reference.h"
#include "topologies/topology_file.h"

namespace lockstep {
namespace {

struct Row {
  std::string source;
  Job job;
  double measured_s = 0;
  double predicted_s = 0;
};

bool all_rows() { return std::getenv("LOCKSTEP_SCORE_ALL") != nullptr; }

/// Megatron-LM's GPT on A100s of 2021 and 2022: fp16, dropout, no fused attention.
Job gpt_job(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t seq) {
  Job job;
  job.model = testing::gpt(layers, hidden, heads, 51200, seq);
  job.seq = seq;
  job.precision = Precision::kFp16;
  job.flash_attention = false;
  job.dropout = true;
  job.gpu_type = "A100";
  return job;
}

std::vector<std::vector<std::string>> csv(const std::string& name) {
  std::vector<std::vector<std::string>> rows;
  const std::string text = testing::slurp(testing::reference_dir() + "/physical/" + name);
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty() || line.front() == '#') {
      continue;
    }
    std::vector<std::string>& row = rows.emplace_back(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        row.emplace_back();
      } else if (c != '\r') {
        row.back() += c;
      }
    }
  }
  return rows;
}

std::int64_t whole(const std::string& text) { return std::stoll(text); }

void add_vtrain(const std::string& file, const std::string& source, bool billions,
                std::size_t every, std::vector<Row>& rows) {
  const auto table = csv(file);
  const std::size_t first = billions ? 1 : 0;
  for (std::size_t i = 1; i < table.size(); ++i) {
    const auto at = [&](std::size_t column) { return whole(table[i][first + column]); };
    const std::int64_t microbatches = at(1) / (at(2) * at(8));
    if (!all_rows() &&
        (i % every != 0 || (billions && (at(9) > 1 || at(0) > 64 || microbatches > 4)))) {
      continue;
    }
    Row row{source, gpt_job(at(5), at(3), at(4), at(6))};
    row.job.gpus = at(0);
    row.job.global_batch = at(1);
    row.job.micro_batch = at(2);
    row.job.tp = at(7);
    row.job.pp = at(9);
    // The larger models ran with recomputation (vTrain, section 5: Megatron-LM's recipes).
    row.job.recompute = billions ? Recompute::kFull : Recompute::kNone;
    row.measured_s = std::stod(table[i][first + 10]) / 1e3;
    rows.push_back(std::move(row));
  }
}

/// Korthikanti et al. 2022, table 5 and the models of its table 3.
void add_korthikanti(std::vector<Row>& rows) {
  const std::map<std::string, std::array<std::int64_t, 3>> models{
      {"megatron-22B", {48, 6144, 64}},
      {"gpt3-175B", {96, 12288, 96}},
      {"turing-530B", {105, 20480, 128}},
      {"megatron-1T", {128, 25600, 160}}};
  const auto table = csv("megatron_seqsel_table5.csv");
  for (std::size_t i = 1; i < table.size(); ++i) {
    const std::vector<std::string>& cells = table[i];
    if (!all_rows() && whole(cells[3]) > 8) {
      continue;
    }
    const auto& [layers, hidden, heads] = models.at(cells[0]);
    Row row{"Korthikanti table 5", gpt_job(layers, hidden, heads, 2048)};
    row.job.recompute = cells[1] == "full" ? Recompute::kFull : Recompute::kSelective;
    row.job.sequence_parallel = cells[2] == "1";
    row.job.gpus = whole(cells[3]);
    row.job.tp = whole(cells[4]);
    row.job.pp = whole(cells[5]);
    row.job.vpp = whole(cells[7]);
    row.job.global_batch = whole(cells[8]);
    row.job.micro_batch = whole(cells[9]);
    row.measured_s = std::stod(cells[10]);
    rows.push_back(std::move(row));
  }
}

/// Narayanan et al. 2021, table 1.
void add_sc21(std::vector<Row>& rows) {
  for (const std::vector<std::string>& cells : csv("training-steps.csv")) {
    if (!cells[0].starts_with("Narayanan") || (!all_rows() && whole(cells[9]) > 128)) {
      continue;
    }
    Row row{"SC'21 table 1", gpt_job(whole(cells[3]), whole(cells[4]), whole(cells[5]), 2048)};
    row.job.gpus = whole(cells[9]);
    row.job.tp = whole(cells[10]);
    row.job.pp = whole(cells[11]);
    row.job.global_batch = whole(cells[16]);
    row.job.micro_batch = whole(cells[17]);
    row.job.recompute = Recompute::kFull;
    row.measured_s = std::stod(cells[19]);
    rows.push_back(std::move(row));
  }
}

/// A100 servers: NVLink 300 GB/s each way, eight NICs of 200 Gb/s.
double step_s(const Job& job) {
  const std::int64_t gpus = std::max<std::int64_t>(8, (job.gpus + 7) / 8 * 8);
  const Topology topology = topology_from(
      fmt::format("Spectrum-X:g={},gt=A100,nvbw=2400Gbps,bw=200Gbps,apbw=200Gbps", gpus), nullptr);
  const GpuSpec& gpu = gpu_spec(job.gpu_type);
  const Workload workload = exact_workload(
      job, [&](const Operator& op) { return operator_time(op, gpu, job.precision); });
  const NcclFabric fabric = fabric_of(topology, topology.gpus());
  ScheduleCache schedules;
  return simulate_step(
             workload, topology, [&] { return std::make_unique<FlowEngine>(topology); },
             [&](CommType op, Bytes bytes, const GroupShape& shape) {
               const TunedRequest tuned = tune({.op = op, .bytes = bytes}, shape, fabric);
               return schedules.get(tuned.request, shape, tuned.algorithm);
             },
             {})
      .total.seconds();
}

struct Score {
  std::size_t rows = 0;
  double median = 0, mean = 0, p90 = 0, bias = 0;
};

Score score_of(const std::vector<const Row*>& rows) {
  std::vector<double> errors;
  double logs = 0, sum = 0;
  for (const Row* row : rows) {
    const double ratio = row->predicted_s / row->measured_s;
    errors.push_back(std::abs(ratio - 1));
    sum += errors.back();
    logs += std::log(ratio);
  }
  std::ranges::sort(errors);
  const auto n = static_cast<double>(errors.size());
  return {errors.size(), errors[errors.size() / 2], sum / n,
          errors[std::min(errors.size() - 1, static_cast<std::size_t>(0.9 * n))],
          std::exp(logs / n) - 1};
}

TEST(StepScore, AgainstPublishedStepTimes) {
  LOCKSTEP_NEEDS_REFERENCE();
  std::vector<Row> rows;
  add_korthikanti(rows);
  add_sc21(rows);
  add_vtrain("vtrain_a100_single_node_steps.csv", "vTrain, one node", false, 10, rows);
  add_vtrain("vtrain_a100_multi_node_steps.csv", "vTrain, several nodes", true, 1, rows);
  std::map<std::string, std::vector<const Row*>> by_source;
  for (Row& row : rows) {
    row.predicted_s = step_s(row.job);
    if (std::getenv("LOCKSTEP_SCORE_ROWS") != nullptr) {
      std::printf("%s gpus %ld tp %ld pp %ld mb %ld: %.4f s measured, %.4f predicted, %+.1f%%\n",
                  row.source.c_str(), row.job.gpus, row.job.tp, row.job.pp, row.job.micro_batch,
                  row.measured_s, row.predicted_s, 100 * (row.predicted_s / row.measured_s - 1));
      std::fflush(stdout);
    }
    by_source[row.source].push_back(&row);
    by_source["~ all"].push_back(&row);
  }
  std::printf("%-24s %6s %8s %8s %8s %8s\n", "source", "rows", "median", "mean", "p90", "bias");
  std::map<std::string, Score> scores;
  for (const auto& [source, members] : by_source) {
    const Score score = scores[source] = score_of(members);
    std::printf("%-24s %6zu %7.1f%% %7.1f%% %7.1f%% %+7.1f%%\n", source.c_str(), score.rows,
                100 * score.median, 100 * score.mean, 100 * score.p90, 100 * score.bias);
  }
  if (all_rows()) {
    return;
  }
  // Present figures: the roofline is a lower bound, and far from it where kernels are short.
  struct Pin {
    const char* source;
    std::size_t rows;
    double median, bias;
  };
  for (const Pin& pin :
       {Pin{"Korthikanti table 5", 2, 0.195, -0.179}, Pin{"SC'21 table 1", 1, 0.200, -0.200},
        Pin{"vTrain, one node", 73, 0.586, -0.624}, Pin{"vTrain, several nodes", 7, 0.252, -0.310},
        Pin{"~ all", 83, 0.505, -0.593}}) {
    const Score& score = scores[pin.source];
    EXPECT_EQ(score.rows, pin.rows) << pin.source;
    EXPECT_NEAR(score.median, pin.median, 0.01) << pin.source;
    EXPECT_NEAR(score.bias, pin.bias, 0.01) << pin.source;
  }
}

}  // namespace
}  // namespace lockstep
