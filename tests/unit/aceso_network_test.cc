#include <gtest/gtest.h>

#include "planner/aceso/network.h"

namespace lockstep::aceso::aceso_network_test {
namespace {

// Aceso looks a size up as "%.0f" prints it, then the size less 1 MB: "-0" for 0.625 MB, which is
// no key though 0 is one.
TEST(AcesoNetwork, SizesBelowAMegabyteAreNotNone) {
  Database database;
  database.collectives[0][1] = {{0, 0.5}, {2, 3.0}};
  const auto at = [&](double size_mb) {
    return collective_ms(database, static_cast<Primitive>(0), 2, size_mb, Flavour::kStrict);
  };
  EXPECT_EQ(at(0), 0.5);
  EXPECT_EQ(at(0.5), 0.5);        // halves to even
  EXPECT_EQ(at(0.625), 100'000);  // "1", then "-0"
  EXPECT_EQ(at(1), 0.5);          // "1", then "0"
  EXPECT_EQ(at(1.5), 3.0);        // "2"
  EXPECT_EQ(at(2.625), 3.0);      // "3", then "2"
  EXPECT_EQ(at(4), 100'000);
}

}  // namespace
}  // namespace lockstep::aceso::aceso_network_test
