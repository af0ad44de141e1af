// All-reduces over servers in flavour simai, whose messages take hashed ways and travel in convoys:
// the flow engine against the packet engine, means of what ends first and last over seeds, by which
// either draws an order (docs/models.md, convoys).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "tests/support/run.h"

namespace lockstep::convoys_test {
namespace {

struct Ends {
  double first = 0, last = 0;  // us
};

/// Of so many seeds. A file "conf" is at hand.
Ends mean_ends(int gpus, int mebibytes, int seeds, std::vector<std::string> engine) {
  testing::ScratchFolder folder;
  write_file(folder / "conf", "CC_MODE 1\nENABLE_QCN 1\nPACKET_PAYLOAD_SIZE 9000\nHAS_WIN 1\n");
  std::ranges::replace(engine, "conf", folder / "conf");
  write_file(
      folder / "workload.txt",
      fmt::format("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {0} ep: 1 pp: 1 "
                  "vpp: 1 ga: 1 all_gpus: {0} checkpoints: 0 checkpoint_initiates: 0\n1\n"
                  "layer -1 556000 ALLREDUCE {1} 1 NONE 0 1 NONE 0 1\n",
                  gpus, mebibytes << 20));
  Ends mean;
  for (int seed = 1; seed <= seeds; ++seed) {
    std::vector<std::string> command = {"simulate",
                                        "--flavour",
                                        "simai",
                                        "--workload",
                                        folder / "workload.txt",
                                        "--topology",
                                        fmt::format("Spectrum-X:g={}", gpus),
                                        "--send-latency",
                                        "6us",
                                        "--json",
                                        "-q",
                                        "--seed",
                                        std::to_string(seed)};
    command.insert(command.end(), engine.begin(), engine.end());
    const auto result = testing::run(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Json document = Json::parse(result.out);
    mean.first += document["first_rank_end_s"].get<double>() * 1e6 / seeds;
    mean.last += document["last_rank_end_s"].get<double>() * 1e6 / seeds;
  }
  return mean;
}

TEST(Convoys, OfMessagesAreThoseOfPackets) {
  // The fluid alone: +1.6, -7.8 and -1.1 % (first), -0.4, -14.5 and -2.9 % (last).
  for (const auto& [gpus, mebibytes] :
       {std::pair(16, 128), std::pair(64, 128), std::pair(64, 256)}) {
    const Ends flow = mean_ends(gpus, mebibytes, 4, {"--engine", "flow"});
    const Ends packet =
        mean_ends(gpus, mebibytes, 4, {"--engine", "packet", "--fabric", "TieOrder=Random"});
    fmt::print(
        "{:4} MiB on {:2} GPUs: first {:.1f} us, packets {:.1f} ({:+.1f} %), last {:.1f}, {:.1f} "
        "({:+.1f} %)\n",
        mebibytes, gpus, flow.first, packet.first, 100 * (flow.first / packet.first - 1), flow.last,
        packet.last, 100 * (flow.last / packet.last - 1));
    EXPECT_NEAR(flow.first / packet.first, 1, 0.05);
    EXPECT_NEAR(flow.last / packet.last, 1, 0.08);
  }
}

TEST(Convoys, AreLeftAloneByAConfAlone) {
  const auto ends = [](const std::vector<std::string>& flags) {
    return mean_ends(16, 32, 1, flags).last;
  };
  const double without = ends({"--engine", "flow"});
  EXPECT_EQ(ends({"--engine", "flow", "--conf", "conf"}), without);
  EXPECT_NE(ends({"--engine", "flow", "--conf", "conf", "--congestion", "dcqcn"}), without);
}

}  // namespace
}  // namespace lockstep::convoys_test
