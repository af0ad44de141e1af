// Two-node sweeps of two clusters, of which the collection flags slow pairs: how many of them are
// found, and how many healthy ones are taken for slow.
#include "analysis/compare/health.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/csv_rows.h"
#include "tests/support/reference.h"
#include "trace/log_reader.h"

namespace lockstep::compare::health_test {
namespace {

TEST(Health, PairwiseSweeps) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::string folder = testing::reference_dir() + "/physical/";
  std::map<std::string, std::string> status;
  for (const auto& row : testing::read_csv(folder + "tables_pairwise.csv")) {
    status[row.at("id")] = row.at("status");
  }
  const Health health = check_health(read_logs(folder + "index_pairwise.csv"));
  std::size_t flagged = 0, found = 0, called = 0;
  for (const TestHealth& test : health.tests) {
    ASSERT_EQ(test.hosts.size(), 2U) << test.id;
    const bool problem = status.at(test.id) != "healthy";
    flagged += problem ? 1U : 0U;
    called += test.slow ? 1U : 0U;
    found += problem && test.slow ? 1U : 0U;
  }
  fmt::print("{} tests, {} flagged, {} called slow, {} of them flagged; {} findings\n{}",
             health.tests.size(), flagged, called, found, health.findings.size(),
             health_table(health).substr(0, 3000));
  EXPECT_GE(static_cast<double>(found), 0.95 * static_cast<double>(flagged));
  EXPECT_EQ(found, called);
}

}  // namespace
}  // namespace lockstep::compare::health_test
