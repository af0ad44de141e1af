// Every raw log of the reference collection is read, or refused with a reason; the rows agree with
// those that the collection's own readers found. Damaged copies are read or refused as well.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/gunzip.h"
#include "base/text.h"
#include "tests/support/csv_rows.h"
#include "tests/support/reference.h"
#include "tests/support/sanitized.h"
#include "trace/aicb_bandwidth.h"
#include "trace/log_reader.h"

namespace lockstep::physical_logs_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry :
       fs::directory_iterator(testing::reference_dir() + "/physical/" + folder)) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

/// Under a sanitizer, where all take minutes, each eighth.
std::vector<std::string> files_to_damage(const std::string& folder) {
  const std::vector<std::string> all = files_of(folder);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < all.size(); i += testing::is_sanitized() ? 8U : 1U) {
    files.push_back(all[i]);
  }
  return files;
}

/// Neither a crash nor a hang: rows, or one Error.
void survive(std::string_view text, const std::string& file) {
  try {
    read_log(text, file);
  } catch (const Error&) {
    return;
  }
}

TEST(PhysicalLogs, RowsAgreeWithTheIndex) {
  LOCKSTEP_NEEDS_REFERENCE();
  using Key = std::tuple<std::string, std::int64_t, bool>;
  std::map<Key, std::vector<double>> indexed;
  std::map<std::string, std::map<std::string, std::string>> facts;
  const std::string folder = testing::reference_dir() + "/physical/";
  for (const auto& row : testing::read_csv(folder + "index.csv")) {
    indexed[{row.at("id"), *to_int(row.at("bytes")), row.at("in_place") == "1"}].push_back(
        *to_double(row.at("time_us")));
    facts[row.at("id")] = row;
  }
  std::size_t compared = 0, files = 0;
  std::vector<std::string> refused;
  std::set<std::string> untold;  // files that leave the number of ranks or servers open
  for (const std::string& file : files_of("logs")) {
    PhysicalLog log;
    try {
      log = read_logs(file).at(0);
    } catch (const Error& error) {
      refused.push_back(error.what());
      continue;
    }
    ++files;
    const std::string id = fs::path(file).stem().string();
    std::map<Key, std::vector<double>> ours;
    for (const CommRow& row : log.comms) {
      if (row.op != comm_type_in(facts[id]["op"]) && log.settings.size() > 1) {
        continue;  // another program's table in the same file
      }
      ours[{id, row.bytes.count(), row.in_place}].push_back(row.time_s * 1e6);
      EXPECT_EQ(row.op, comm_type_in(facts[id]["op"])) << file;
      const CommSetting& setting = log.settings.at(static_cast<std::size_t>(row.setting));
      untold.insert(row.ranks == 0 || setting.servers == 0 ? file : "");
      EXPECT_TRUE(row.ranks == 0 || std::to_string(row.ranks) == facts[id]["gpus"]) << file;
      EXPECT_TRUE(setting.servers == 0 || std::to_string(setting.servers) == facts[id]["nodes"])
          << file;
    }
    for (const auto& [key, times] : indexed) {
      if (std::get<0>(key) != id || std::get<1>(key) == 0) {
        continue;
      }
      const auto found = ours.find(key);
      ASSERT_NE(found, ours.end()) << file << ": " << std::get<1>(key);
      for (const double time : times) {
        double nearest = INFINITY;
        for (const double mine : found->second) {
          nearest = std::min(nearest, std::abs(mine / time - 1));
        }
        EXPECT_LT(nearest, 0.02) << file << ": " << std::get<1>(key) << " " << time;
        ++compared;
      }
    }
  }
  for (const std::string& why : refused) {
    fmt::print("refused: {}\n", why);
  }
  untold.erase("");
  for (const std::string& file : untold) {
    fmt::print("ranks or servers untold: {}\n", file);
  }
  fmt::print("{} files, {} rows compared\n", files, compared);
  EXPECT_LE(untold.size(), 20U);
  EXPECT_GT(compared, 7000U);
  EXPECT_LE(refused.size(), 3U);
}

TEST(PhysicalLogs, TracesAreRead) {
  LOCKSTEP_NEEDS_REFERENCE();
  std::size_t ops = 0, communications = 0;
  for (const std::string& file : files_of("traces")) {
    for (const PhysicalLog& log : read_logs(file)) {
      std::size_t own = 0;
      for (const OpRow& row : log.ops) {
        own += row.kind == OpKind::kCommunication ? 1U : 0U;
      }
      fmt::print("{}: {}, {} operations, {} of communication, {} steps, {} warnings\n",
                 fs::path(log.file).filename().string(), log.format, log.ops.size(), own,
                 log.steps.size(), log.warnings.total());
      EXPECT_FALSE(log.ops.empty()) << log.file;
      ops += log.ops.size();
      communications += own;
    }
  }
  EXPECT_GT(ops, 10000U);
  EXPECT_GT(communications, 1000U);
}

TEST(PhysicalLogs, DamagedTracesAreReadOrRefused) {
  LOCKSTEP_NEEDS_REFERENCE();
  for (const std::string& file : files_to_damage("traces")) {
    const std::string text = testing::slurp(file).substr(0, 4 << 20);
    survive(text.substr(0, text.size() / 2 + 17), file);
    std::string dirty = text.substr(0, 1 << 20);
    for (std::size_t i = 971; i < dirty.size(); i += 2111) {
      dirty[i] = static_cast<char>(dirty[i] * 7 + static_cast<char>(i));
    }
    survive(dirty, file);
  }
}

/// AICB's own log analysis on 3,120 lines: type, size, time, group, bandwidths, size text.
TEST(PhysicalLogs, AicbBandwidthsToTheDigit) {
  LOCKSTEP_NEEDS_REFERENCE();
  std::size_t rows = 0;
  for (const auto& row : testing::read_csv(testing::reference_dir() + "/aicb/L006/out/bw.csv")) {
    const auto bytes = static_cast<std::int64_t>(to_double(row.at("size")).value());
    const AicbBandwidth ours =
        aicb_bandwidth(row.at("comm_type"), bytes, *to_double(row.at("duration_ms")),
                       to_int(row.at("group_size")).value_or(1));
    EXPECT_EQ(ours.algbw, *to_double(row.at("algbw"))) << rows;
    EXPECT_EQ(ours.busbw, *to_double(row.at("busbw"))) << rows;
    EXPECT_EQ(aicb_size_text(bytes), row.at("msg")) << rows;
    ++rows;
  }
  EXPECT_EQ(rows, 3120U);
}

TEST(PhysicalLogs, DamagedCopiesAreReadOrRefused) {
  LOCKSTEP_NEEDS_REFERENCE();
  for (const std::string& file : files_to_damage("logs")) {
    const std::string text = testing::slurp(file);
    survive(std::string_view(text).substr(0, text.size() / 2), file);
    survive(std::string_view(text).substr(text.size() / 3), file);
    std::string dirty = text;
    for (std::size_t i = 97; i < dirty.size(); i += 211) {
      dirty[i] = static_cast<char>(dirty[i] * 7 + static_cast<char>(i));
    }
    survive(dirty, file);
  }
}

}  // namespace
}  // namespace lockstep::physical_logs_test
