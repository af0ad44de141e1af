// `lockstep compare LOG --json` on every raw log of the collection: all rows that its own readers
// found are there with their times, beside a prediction.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "tests/support/csv_rows.h"
#include "tests/support/reference.h"
#include "tests/support/run.h"

namespace lockstep::compare_logs_test {
namespace {

namespace fs = std::filesystem;

/// A row of a table of nccl-tests, and how often it was measured in the log: microseconds.
using Row = std::tuple<std::string, std::int64_t, bool>;
using Rows = std::map<Row, std::vector<double>>;

/// The contract's names of operations have no underscore.
std::string name_of(std::string op) {
  std::erase(op, '_');
  return op;
}

std::map<std::string, Rows> indexed() {
  std::map<std::string, Rows> logs;
  for (const auto& row : testing::read_csv(testing::reference_dir() + "/physical/index.csv")) {
    const std::int64_t bytes = to_int(row.at("bytes")).value();
    if (bytes > 0) {
      logs[row.at("id")][{name_of(row.at("op")), bytes, row.at("in_place") == "1"}].push_back(
          to_double(row.at("time_us")).value());
    }
  }
  return logs;
}

Rows compared(const std::string& text) {
  Rows rows;
  const Json document = Json::parse(text);
  EXPECT_EQ(document["schema"], "lockstep-compare/1");
  for (const Json& table : document["tables"]) {
    for (const Json& row : table["rows"]) {
      EXPECT_GT(row["predicted_s"].get<double>(), 0);
      rows[{table["op"], row["size_bytes"], row["in_place"]}].push_back(
          row["measured_s"].get<double>() * 1e6);
    }
  }
  return rows;
}

TEST(CompareLogs, EveryIndexedRowIsCompared) {
  LOCKSTEP_NEEDS_REFERENCE();
  std::map<std::string, Rows> wanted = indexed();
  std::size_t logs = 0, rows = 0;
  for (const auto& file : fs::directory_iterator(testing::reference_dir() + "/physical/logs")) {
    const std::string id = file.path().stem().string();
    SCOPED_TRACE(id);
    testing::RunResult result = testing::run({"compare", file.path().string(), "--json"});
    if (result.exit_code == 2 && result.err.find("what cluster it is of") != std::string::npos) {
      fmt::print("{}: not told of what cluster\n", id);
      result = testing::run({"compare", file.path().string(), "--preset", "dgx-a100", "--json"});
    }
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Rows ours = compared(result.out);
    for (const auto& [row, times] : wanted[id]) {
      const auto found = ours.find(row);
      ASSERT_NE(found, ours.end()) << std::get<0>(row) << " " << std::get<1>(row);
      for (const double time : times) {
        const double nearest = std::ranges::min(
            found->second, {}, [&](double mine) { return std::abs(mine / time - 1); });
        EXPECT_NEAR(nearest, time, 0.02 * time) << std::get<0>(row) << " " << std::get<1>(row);
        ++rows;
      }
    }
    ++logs;
  }
  fmt::print("{} logs, {} rows\n", logs, rows);
  EXPECT_GT(logs, 150U);
  EXPECT_GT(rows, 7000U);
}

}  // namespace
}  // namespace lockstep::compare_logs_test
