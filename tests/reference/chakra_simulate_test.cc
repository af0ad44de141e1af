// The execution trace that Chakra's own feeder is tested with is simulated, whole.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/gunzip.h"
#include "base/json.h"
#include "tests/support/reference.h"
#include "tests/support/run.h"

namespace lockstep::chakra_simulate_test {
namespace {

/// Chakra's traces of one rank, in a folder.
void unpack(const std::string& folder) {
  const std::string archive =
      testing::reference_dir() + "/physical/traces/chakra-feeder_tests_trace.tar.gz";
  const std::string text = testing::slurp(archive);
  for (const TarMember& member : tar_members(text, archive)) {
    write_file(folder + std::filesystem::path(member.name).filename().string(),
               std::string(member.text));
  }
}

// 3,664 nodes of one rank: 2,448 calls on the host, 1,209 kernels on one stream and 7 collectives,
// which take no time in a group of one. Its longest chain, of data dependencies and streams, was
// counted by a program of its own from the bytes of the file.
TEST(ChakraSimulate, TheFeedersTraceRuns) {
  LOCKSTEP_NEEDS_REFERENCE();
  const testing::ScratchFolder folder;
  unpack(folder / "");
  const testing::RunResult result = testing::run(
      {"simulate", "--workload", folder / "", "--topology", "Spectrum-X:g=8", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_NEAR(json["total_s"].get<double>(), 0.297046, 1e-9);
  EXPECT_NE(result.err.find("data dependencies were passed over (3659 times)"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace lockstep::chakra_simulate_test
