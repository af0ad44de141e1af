#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/reference.h"
#include "workloads/simai_txt.h"
#include "workloads/validate.h"

namespace lockstep::workload_reference_test {
namespace {

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_workload_text(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return path.find("/out/") != std::string::npos &&
         (name.ends_with(".txt") || name.ends_with(".txt.gz")) &&
         (name.starts_with("micro_") || path.find("/workload/") != std::string::npos);
}

// Reads and writes every workload text that AICB wrote; each must come back byte by byte.
TEST(WorkloadReference, AicbFilesRoundTripByteByByte) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::map<char, std::string> kinds{
      {'S', "training"}, {'X', "training by script"}, {'I', "inference"}, {'M', "micro"}};
  std::map<std::string, int> files, layers;
  const std::string root = testing::reference_dir() + "/aicb";
  for (const std::string& path : files_below(root)) {
    const auto kind = kinds.find(path[root.size() + 1]);
    if (kind == kinds.end() || !is_workload_text(path)) {
      continue;
    }
    const std::string text = testing::slurp(path);
    if (text.empty()) {  // AICB crashed and left an empty file
      EXPECT_THROW(read_simai_txt(text, path), Error);
      continue;
    }
    Warnings warnings;
    const Workload workload = read_simai_txt(text, path, &warnings);
    EXPECT_TRUE(to_simai_txt(workload) == text) << path << " was not written back as it was";
    EXPECT_EQ(warnings.total(), 0) << path << ": " << warnings.entries()[0].text;
    EXPECT_NO_THROW(validate(workload)) << path;
    ++files[kind->second];
    layers[kind->second] +=
        static_cast<int>(std::get<LayerTable>(workload.jobs[0].work).layers.size());
  }
  for (const auto& [letter, kind] : kinds) {
    EXPECT_GT(files[kind], 0) << kind;
    std::cout << kind << ": " << files[kind] << " files, " << layers[kind] << " layers\n";
  }
}

// SimAI's own inputs are spelled loosely (blanks, no last newline); what they say must survive.
TEST(WorkloadReference, SimaiInputsKeepTheirMeaning) {
  LOCKSTEP_NEEDS_REFERENCE();
  int files = 0;
  for (const std::string& path : files_below(testing::reference_dir() + "/simai")) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (name != "workload.txt" && name != "workload_analytical.txt" &&
        name != "microAllReduce.txt") {
      continue;
    }
    Warnings warnings;
    const Workload workload = read_simai_txt(testing::slurp(path), path, &warnings);
    EXPECT_EQ(read_simai_txt(to_simai_txt(workload), path), workload) << path;
    EXPECT_EQ(warnings.total(), 0) << path;
    EXPECT_NO_THROW(validate(workload)) << path;
    ++files;
  }
  EXPECT_GT(files, 0);
  std::cout << files << " files\n";
}

// The example of SimAI's tutorial: 9216 GPUs, tp 2, ep 16, pp 12, 1789 layers, "pp_comm" without
// its colon; written back byte by byte.
TEST(WorkloadReference, SimaiAnalyticalExample) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::string path = testing::reference_dir() + "/simai/inputs/workload_analytical.txt";
  const std::string text = testing::slurp(path);
  const Workload workload = read_simai_txt(text, path);
  EXPECT_EQ(workload.jobs[0].parallel,
            (Parallelism{.gpus = 9216, .tp = 2, .ep = 16, .pp = 12, .vpp = 8, .ga = 24}));
  const auto& table = std::get<LayerTable>(workload.jobs[0].work);
  EXPECT_EQ(table.layers.size(), 1789U);
  EXPECT_EQ(table.pp_comm_bytes, 50331648);
  EXPECT_TRUE(to_simai_txt(workload) == text);
}

}  // namespace
}  // namespace lockstep::workload_reference_test
