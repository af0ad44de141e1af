// A slow worker of random jobs (recover.h).
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/cli/recover.h"

namespace lockstep {
namespace {

/// A dense job of 2 to 32 GPUs with several workers a stage, and a straggler of it. Of schedules
/// whose weights' gradients are worked out later a trace does not tell what a stage would wait for
/// (docs/stragglers.md).
struct RandomCase {
  std::string job, straggler;
  int rank = 0;
  double factor = 0;
};

RandomCase random_case(Rng& rng) {
  const auto pick = [&](std::vector<std::int64_t> of) { return of[rng.below(of.size())]; };
  std::int64_t tp = 1, cp = 1, dp = 1, pp = 1;
  do {
    tp = pick({1, 1, 2, 4});
    cp = pick({1, 1, 1, 2});
    dp = pick({1, 2, 4});
    pp = pick({1, 2, 4});
  } while (tp * cp * dp < 2 || tp * cp * dp * pp > 32);
  const std::string schedule =
      pp == 1 ? "1f1b" : std::vector{"1f1b", "1f1b", "gpipe"}[rng.below(3)];
  const std::int64_t vpp = pp > 1 && schedule == "1f1b" ? pick({1, 1, 2}) : 1;
  RandomCase result;
  result.job = fmt::format(
      "--model llama3-8b --num-layers {} --gpus {} --tp {} --cp {} --pp {} --vpp {} --mbs 1 "
      "--gbs {} --seq {} --schedule {} --zero {}{}{}",
      pick({8, 16, 32}), tp * cp * dp * pp, tp, cp, pp, vpp, dp * pick({4, 8, 16}),
      pick({1024, 2048, 4096, 8192}), schedule, pick({0, 1, 2}),
      tp > 1 && rng.below(3) > 0 ? " --sp" : "", rng.below(5) == 0 ? " --recompute selective" : "");
  result.rank = static_cast<int>(rng.below(static_cast<std::uint64_t>(tp * cp * dp * pp)));
  result.factor = 1.1 + 0.01 * static_cast<double>(rng.below(90));
  result.straggler = fmt::format("gpu:{}:{:.2f}", result.rank, result.factor);
  return result;
}

// The rank and its factor where it costs 2 %; S within 1 % in nine of ten jobs, and 3 % in all.
// What is left: transfers take longer where all begin them at once than where some wait for the
// last.
TEST_F(Recover, RandomJobs) {
  cluster_gpus_ = 32;
  Rng rng(1, "recovered stragglers");
  int close = 0;
  const int jobs = testing::is_sanitized() ? 8 : 40;
  for (int i = 0; i < jobs; ++i) {
    const RandomCase one = random_case(rng);
    SCOPED_TRACE(one.job + " " + one.straggler);
    const double wanted = simulate(one.job, one.straggler);
    whatif();
    const Json causes = json_of("out/causes-simulated.json");
    const double replaced_s = with_remedy(causes, "replace-worker");
    const double off = causes["step_time_s"].get<double>() / replaced_s / wanted - 1;
    EXPECT_NEAR(off, 0, 0.03);
    close += off >= -0.01 && off <= 0.01 ? 1 : 0;
    if (wanted >= 1.02) {
      EXPECT_EQ(causes["slowest_workers"][0]["rank"], one.rank);
      ASSERT_FALSE(causes["causes"].empty());
      const Json& cause = causes["causes"][0];
      EXPECT_EQ(cause["cause"], "worker");
      EXPECT_EQ(cause["ranks"], Json({one.rank}));
      EXPECT_NEAR(cause["factor"].get<double>() / one.factor, 1, 0.02);
    }
  }
  EXPECT_GE(close, jobs * 9 / 10);
}

}  // namespace
}  // namespace lockstep
