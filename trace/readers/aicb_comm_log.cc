// AICB's comm log, results/comm_logs/<base>_log.csv: one communication a row, with its time in
// milliseconds; computations and ends of epochs between. Bandwidths in the file are in units of
// 1024^3 (specs: AICB's log analysis); they are recomputed by its rule where they are left out.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/aicb_bandwidth.h"
#include "trace/aicb_groups.h"
#include "trace/log_reader.h"
#include "trace/wrapped_size.h"

namespace lockstep {
namespace {

bool sniff(std::string_view head, std::string_view) {
  std::string_view line;
  return next_line(head, line) && line.starts_with("comm_type,") &&
         line.find("_elapsed_time") != std::string_view::npos &&
         line.find("msg_size") != std::string_view::npos;
}

/// "CommType.all_gather" and "all_gather" alike.
std::string without_class(const std::string& text) {
  const std::size_t dot = text.rfind('.');
  return dot == std::string::npos ? text : text.substr(dot + 1);
}

/// Ranks of a group: "8", pandas' "8.0"; 1 where there is none ("", "None"); 0: no such number.
std::int32_t group_size(const std::string& text) {
  if (text.empty() || text == "None") {
    return 1;
  }
  const double size = to_double(text).value_or(0);
  return size >= 1 && size <= (1 << 24) && size == std::floor(size)
             ? static_cast<std::int32_t>(size)
             : 0;
}

void read(std::string_view text, PhysicalLog& log) {
  std::string_view line;
  std::vector<std::string> fields;
  std::map<std::string, std::size_t> columns;
  if (next_line(text, line)) {
    split_csv(line, fields);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      columns.emplace(fields[i], i);
    }
  }
  for (const char* needed :
       {"comm_type", "comm_group", "comm_group_size", "msg_size", "_elapsed_time"}) {
    if (!columns.contains(needed)) {
      throw Error("no column " + std::string(needed)).expected("a comm log of AICB");
    }
  }
  const std::size_t width = fields.size();
  const auto value = [&](const char* name) -> std::string {
    const auto column = columns.find(name);
    return column == columns.end() || column->second >= fields.size() ? "" : fields[column->second];
  };
  CommSetting setting;
  setting.id = log.file.substr(log.file.rfind('/') + 1);
  setting.program = "AICB";
  TextTable names(log.names), groups(log.groups);
  std::int64_t number = 1, epoch = 0;
  double clock = 0;
  bool sets_up = columns.contains("stage");  // so far; the first epoch_end ends that
  while (next_line(text, line)) {
    ++number;
    if (trim(line).empty()) {
      continue;
    }
    split_csv(line, fields);
    const auto elapsed = to_double(value("_elapsed_time"));
    if (fields.size() + 1 < width || !elapsed || *elapsed < 0) {
      log.warnings.add("lines that are cut off or have no time were passed over");
      continue;
    }
    const std::string type = without_class(value("comm_type"));
    const double seconds = *elapsed * 1e-3;
    if (type == "epoch_end") {
      if (sets_up) {
        log.ops.clear();  // their times are in the rows, and of no step
        clock = 0;
      } else {
        log.steps.push_back({epoch++, -1, seconds});
      }
      sets_up = false;
      continue;
    }
    sets_up = sets_up && value("stage").starts_with("init");
    const auto size = aicb_size(value("msg_size"));
    const auto bytes = size ? size : to_int(value("msg_size"));  // negative: of 32 bits, maybe
    OpRow op;
    op.name = names.index(type);
    op.begin_s = clock;
    op.duration_s = seconds;
    clock += seconds;
    const std::string group = without_class(value("comm_group"));
    if (!group.empty() && group != "None") {
      op.group = groups.index(group);
    }
    if (type == "computation") {
      log.ops.push_back(op);
      continue;
    }
    op.kind = OpKind::kCommunication;
    op.op = comm_type_in(type == "reduce" ? "reduce" : type);
    op.bytes = size.value_or(-1);
    op.group_size = group_size(value("comm_group_size"));
    log.ops.push_back(op);
    if (op.group_size == 0) {
      log.warnings.add(
          "rows whose comm_group_size is no whole number of 1 or more are not compared");
      continue;
    }
    if (!bytes) {
      log.warnings.add("sizes that are no sizes");
      continue;
    }
    CommRow row;
    row.op = op.op;
    row.name = op.name;
    row.group = op.group;
    row.ranks = op.group_size;
    row.bytes = Bytes(*bytes);
    row.time_s = seconds;
    row.line = number;
    const AicbBandwidth ours = aicb_bandwidth(type, *bytes, *elapsed, op.group_size);
    row.algbw_Bps = std::max(0.0, to_double(value("algbw")).value_or(ours.algbw)) * kAicbUnit;
    row.busbw_Bps = std::max(0.0, to_double(value("busbw")).value_or(ours.busbw)) * kAicbUnit;
    if (unwrap_size(row, log.warnings)) {
      log.ops.back().bytes = row.bytes.count();
      log.comms.push_back(row);
    }
  }
  if (log.comms.empty() && log.ops.empty()) {
    throw Error("there is no row of a communication");
  }
  place_aicb_groups(log, setting);
  log.settings.push_back(std::move(setting));
}

}  // namespace

extern const LogReader kAicbCommLogLogReader;
const LogReader kAicbCommLogLogReader{"aicb-comm-log", "AICB's log of a physical run (.csv)", sniff,
                                      read};

}  // namespace lockstep
