// SimAI's analytical mode by the command line, its table byte by byte: every case of
// ../shared/reference/simai/ana*.
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/reference.h"
#include "tests/support/run.h"

namespace lockstep::simai_analytical_test {
namespace {

namespace fs = std::filesystem;

/// Our flag for one of SimAI_analytical's, and the unit that ours names.
struct Flag {
  const char *name, *unit;
};

const std::map<std::string_view, Flag> kFlags{
    {"-g", {"--gpus", ""}},
    {"-g_p_s", {"--gpus-per-server", ""}},
    {"-n_p_s", {"--nics-per-server", ""}},
    {"-nv", {"--nvlink", "GBps"}},
    {"-nic", {"--nic", "GBps"}},
    {"-g_type", {"--gpu-type", ""}},
    {"-nic_t", {"--nic-type", ""}},
    {"-dp_o", {"--dp-overlap", ""}},
    {"-ep_o", {"--ep-overlap", ""}},
    {"-tp_o", {"--tp-overlap", ""}},
    {"-pp_o", {"--pp-overlap", ""}},
    {"-r", {"--csv-prefix", ""}},
};

/// The table that a "SimAI_analytical …" line of SimAI's would write, by ours.
std::string table_of(std::string_view line, const std::string& workload) {
  const ScratchFolder folder;
  std::vector<std::string> words{"simulate",   "--engine", "analytic", "--flavour",  "simai",
                                 "--workload", workload,   "--csv",    folder.path()};
  const auto theirs = split_blanks(line);
  for (std::size_t i = 1; i + 1 < theirs.size(); i += 2) {
    const auto flag = kFlags.find(theirs[i]);
    if (flag == kFlags.end()) {
      EXPECT_EQ(theirs[i], "-w") << "unknown flag in cmd.txt";
      continue;
    }
    words.emplace_back(flag->second.name);
    words.push_back(std::string(theirs[i + 1]) + flag->second.unit);
  }
  const testing::RunResult result = testing::run(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const auto& file : fs::directory_iterator(folder.path())) {
    return testing::slurp(file.path());
  }
  return "no table";
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
    std::string expected;
    for (const auto& file : fs::directory_iterator(dir)) {
      if (file.path().filename().string().ends_with("EndToEnd.csv")) {
        expected = testing::slurp(file.path());
      }
    }
    EXPECT_EQ(table_of(line.substr(0, line.find('\n')), dir / "workload.txt"), expected);
    ++cases;
  }
  EXPECT_GE(cases, 11);
}

TEST(SimaiAnalytical, ShippedExampleOf9216Gpus) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::string dir = testing::reference_dir() + "/simai/";
  EXPECT_EQ(table_of("SimAI_analytical -g 9216 -nv 360 -nic 48.5 -n_p_s 8 -g_p_s 8 -r example-",
                     dir + "inputs/workload_analytical.txt"),
            testing::slurp(dir + "ana-workload_analytical/example-EndToEnd.csv.gz"));
}

}  // namespace
}  // namespace lockstep::simai_analytical_test
