#include "tests/differential/naive_max_min.h"

#include <gtest/gtest.h>

namespace lockstep::naive_max_min_test {
namespace {

using testing::naive_max_min;
using testing::random_system;
using testing::SystemShape;

TEST(MaxMinAgainstNaive, AgreesOnRandomSystems) {
  Rng rng(1, "naive max-min");
  for (int round = 0; round < 2000; ++round) {
    const SystemShape shape{
        static_cast<int>(rng.between(1, 20)), static_cast<int>(rng.between(1, 30)),
        static_cast<int>(rng.between(1, 6)), rng.below(2) == 0, rng.below(2) == 0};
    const testing::System system = random_system(rng, shape);
    const std::vector<double> expected = naive_max_min(system);
    MaxMin solver = testing::to_max_min(system);
    solver.solve();
    for (std::size_t v = 0; v < expected.size(); ++v) {
      ASSERT_NEAR(solver.rate(VariableId(v)), expected[v], 1e-9 * expected[v])
          << "round " << round << ", variable " << v;
    }
  }
}

}  // namespace
}  // namespace lockstep::naive_max_min_test
