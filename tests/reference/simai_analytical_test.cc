// SimAI's analytical mode, byte by byte: every case of ../shared/reference/simai/ana*.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/text.h"
#include "report/end_to_end_csv.h"
#include "simulator/replay/analytic_step.h"
#include "tests/support/reference.h"
#include "workloads/simai_txt.h"

namespace lockstep::simai_analytical_test {
namespace {

namespace fs = std::filesystem;

/// The flags of a "SimAI_analytical …" command line.
struct Command {
  AnalyticOptions options;
  std::string prefix;
};

Command parse_command(std::string_view line) {
  Command command;
  command.options.flavour = Flavour::kSimai;
  const auto words = split_blanks(line);
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    const std::string_view flag = words[i], value = words[i + 1];
    const auto count = [&] { return to_int(value).value(); };
    const auto rate = [&] { return parse_bandwidth(std::string(value) + "GBps"); };
    if (flag == "-g") {
      command.options.gpus = count();
    } else if (flag == "-g_p_s") {
      command.options.gpus_per_server = count();
    } else if (flag == "-n_p_s") {
      command.options.nics_per_server = count();
    } else if (flag == "-nv") {
      command.options.nvlink = rate();
    } else if (flag == "-nic") {
      command.options.nic = rate();
    } else if (flag == "-g_type") {
      command.options.gpu = parse_gpu_type(value);
    } else if (flag == "-nic_t") {
      command.options.nic_type = parse_nic_type(value);
    } else if (flag == "-dp_o") {
      command.options.overlap.dp = to_double(value).value();
    } else if (flag == "-ep_o") {
      command.options.overlap.ep = to_double(value).value();
    } else if (flag == "-tp_o") {
      command.options.overlap.tp = to_double(value).value();
    } else if (flag == "-pp_o") {
      command.options.overlap.pp = to_double(value).value();
    } else if (flag == "-r") {
      command.prefix = value;
    } else {
      EXPECT_EQ(flag, "-w") << "unknown flag in cmd.txt";
    }
  }
  return command;
}

void expect_same_csv(std::string_view command_line, const std::string& workload,
                     const std::string& expected) {
  const Command command = parse_command(command_line);
  const Workload read = read_simai_txt(workload, "workload.txt");
  const WorkloadJob& job = read.jobs.front();
  const StepResult result =
      analytic_step(std::get<LayerTable>(job.work), job.parallel, command.options);
  EXPECT_EQ(end_to_end_csv(result, EndToEndLayout::kAnalytical, command.prefix), expected);
}

TEST(SimaiAnalytical, EveryCaseByteByByte) {
  LOCKSTEP_NEEDS_REFERENCE();
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(testing::reference_dir() + "/simai")) {
    const fs::path dir = entry.path();
    if (!dir.filename().string().starts_with("ana") || !fs::exists(dir / "cmd.txt")) {
      continue;
    }
    SCOPED_TRACE(dir.filename());
    const std::string line = testing::slurp(dir / "cmd.txt");
    const std::string prefix = parse_command(line.substr(0, line.find('\n'))).prefix;
    expect_same_csv(line.substr(0, line.find('\n')), testing::slurp(dir / "workload.txt"),
                    testing::slurp(dir / end_to_end_name(prefix)));
    ++cases;
  }
  EXPECT_GE(cases, 11);
}

TEST(SimaiAnalytical, ShippedExampleOf9216Gpus) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::string dir = testing::reference_dir() + "/simai/";
  expect_same_csv("SimAI_analytical -g 9216 -nv 360 -nic 48.5 -n_p_s 8 -g_p_s 8 -r example-",
                  testing::slurp(dir + "inputs/workload_analytical.txt"),
                  testing::slurp(dir + "ana-workload_analytical/example-EndToEnd.csv.gz"));
}

}  // namespace
}  // namespace lockstep::simai_analytical_test
