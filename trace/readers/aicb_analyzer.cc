// The table that AICB's analyzer prints of a physical run: a row for each operation, group and
// size, with the means of its times (milliseconds, two digits) and bus bandwidths (units of
// 1024^3). It does not tell how large groups are: that follows from the ratio of the two means of
// their largest message, as a power of two.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/aicb_bandwidth.h"
#include "trace/aicb_groups.h"
#include "trace/log_reader.h"

namespace lockstep {
namespace {

bool is_header(std::string_view line) {
  return line.find("Comm_Type") != std::string_view::npos &&
         line.find("Message_Size") != std::string_view::npos &&
         line.find("Avg_BusBw") != std::string_view::npos;
}

/// AICB's CSV of the same (analyze_res.csv), which has no times.
bool is_table_without_times(std::string_view head) {
  return head.starts_with("comm_type,comm_group,msg_size,busbw_mean,");
}

bool sniff(std::string_view head, std::string_view) {
  return is_header(head) || is_table_without_times(head);
}

/// "CommType.all_gather" and "all_gather" alike.
std::string_view without_class(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  return dot == std::string_view::npos ? text : text.substr(dot + 1);
}

/// "157.96±20.16" as 157.96.
std::optional<double> mean_of(std::string_view text) {
  return to_double(text.substr(0, text.find("\u00b1")));
}

/// Ranks of a group whose collective has this bus bandwidth; 0: that does not tell.
std::int32_t ranks_of(const CommRow& row) {
  const double algbw = static_cast<double>(row.bytes.count()) / row.time_s;
  const double ratio = row.busbw_Bps / algbw / (row.op == CommType::kAllReduce ? 2 : 1);
  const bool told = row.op == CommType::kAllReduce || row.op == CommType::kAllGather ||
                    row.op == CommType::kReduceScatter;
  if (!told || !(ratio > 0.3 && ratio < 0.975)) {
    return 0;
  }
  return static_cast<std::int32_t>(std::exp2(std::round(std::log2(1 / (1 - ratio)))));
}

void read(std::string_view text, PhysicalLog& log) {
  if (is_table_without_times(text)) {
    throw Error("AICB's table of bus bandwidths has neither times nor the sizes of groups")
        .expected("the log of the run (results/comm_logs/…_log.csv), or what the analyzer prints");
  }
  TextTable names(log.names), groups(log.groups);
  std::string_view line;
  std::int64_t number = 0;
  bool within = false;
  while (next_line(text, line)) {
    ++number;
    const auto words = split_blanks(line);
    if (is_header(line)) {
      within = true;
      continue;
    }
    if (!within || words.size() != 7) {
      within = within && (words.empty() || line.starts_with("---"));
      continue;
    }
    const auto bytes = aicb_size(std::string(words[2]) + " " + std::string(words[3]));
    const auto time = mean_of(words[5]), busbw = mean_of(words[6]);
    if (!bytes || !time || !busbw || *time <= 0 || *busbw < 0) {
      log.warnings.add("rows of the analyzer's table without a size or a time");
      continue;
    }
    CommRow row;
    row.op = comm_type_in(without_class(words[0]));
    row.name = names.index(without_class(words[0]).substr(0, 100));
    row.group = groups.index(without_class(words[1]).substr(0, 100));
    row.bytes = Bytes(*bytes);
    row.time_s = *time * 1e-3;
    row.busbw_Bps = *busbw * kAicbUnit;
    row.line = number;
    log.comms.push_back(row);
  }
  if (log.comms.empty()) {
    throw Error("there is no row of a communication").expected("what AICB's analyzer prints");
  }
  std::map<std::int32_t, const CommRow*> largest;
  for (const CommRow& row : log.comms) {
    const CommRow*& best = largest.try_emplace(row.group, nullptr).first->second;
    if (ranks_of(row) > 1 && (best == nullptr || row.bytes > best->bytes)) {
      best = &row;
    }
  }
  std::map<std::int32_t, std::int32_t> ranks;
  for (const auto& [group, row] : largest) {
    ranks[group] = row == nullptr ? 0 : ranks_of(*row);
  }
  for (CommRow& row : log.comms) {
    row.ranks = ranks[row.group];
  }
  log.warnings.add(
      "groups are taken to be as large as mean bandwidths say, at most 32; --gpus tells the job's");
  CommSetting setting;
  setting.id = log.file.substr(log.file.rfind('/') + 1);
  setting.program = "AICB";
  place_aicb_groups(log, setting);
  log.settings.push_back(std::move(setting));
}

}  // namespace

extern const LogReader kAicbAnalyzerLogReader;
const LogReader kAicbAnalyzerLogReader{"aicb-analyzer", "what AICB's analyzer prints of a run",
                                       sniff, read};

}  // namespace lockstep
