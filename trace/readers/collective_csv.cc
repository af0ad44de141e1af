// A table of many measurements, one row each, with the hardware beside them: columns id, op, gpus,
// nodes, bytes, time_us, and as far as there gpu_type, nvlink, nic, nccl_version, in_place, busbw.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "trace/csv_fields.h"
#include "trace/log_reader.h"

namespace lockstep {
namespace {

constexpr std::string_view kNeeded[] = {"id", "op", "gpus", "nodes", "bytes", "time_us"};

bool sniff(std::string_view head, std::string_view) {
  std::string_view line;
  if (!next_line(head, line)) {
    return false;
  }
  std::vector<std::string> fields;
  split_csv(line, fields);
  for (const std::string_view name : kNeeded) {
    if (std::ranges::find(fields, name) == fields.end()) {
      return false;
    }
  }
  return true;
}

void read(std::string_view text, PhysicalLog& log) {
  std::string_view line;
  std::vector<std::string> fields;
  std::map<std::string, std::size_t> columns;
  std::size_t width = 0;
  if (next_line(text, line)) {
    split_csv(line, fields);
    width = fields.size();
    for (std::size_t i = 0; i < width; ++i) {
      columns.emplace(fields[i], i);
    }
  }
  for (const std::string_view name : kNeeded) {
    if (!columns.contains(std::string(name))) {
      throw Error("no column " + std::string(name)).expected("id, op, gpus, nodes, bytes, time_us");
    }
  }
  const auto value = [&](const char* name) -> std::string {
    const auto column = columns.find(name);
    return column == columns.end() ? "" : fields[column->second];
  };
  TextTable names(log.names);
  std::map<std::string, std::int32_t> tables;
  std::int64_t number = 1;
  while (next_line(text, line)) {
    ++number;
    if (trim(line).empty()) {
      continue;
    }
    split_csv(line, fields);
    if (fields.size() != width) {
      log.warnings.add("lines with too many or too few fields were passed over");
      continue;
    }
    const auto bytes = to_int(value("bytes")), gpus = to_int(value("gpus")),
               nodes = to_int(value("nodes"));
    const auto time = to_double(value("time_us"));
    const auto sane = [](const auto& v) { return v && *v >= 1 && *v < (1 << 24); };
    if (!bytes || *bytes < 0 || !time || *time < 0 || !sane(gpus) || !sane(nodes) ||
        *nodes > *gpus) {
      log.warnings.add("lines whose numbers make no sense were passed over");
      continue;
    }
    const auto [table, fresh] =
        tables.try_emplace(value("id"), static_cast<std::int32_t>(log.settings.size()));
    if (fresh) {
      CommSetting setting;
      setting.id = value("id");
      setting.gpu_type = value("gpu_type");
      setting.transport = value("nvlink") + " " + value("nic");
      setting.nccl_version = value("nccl_version").substr(0, value("nccl_version").find('+'));
      setting.program = value("op");
      setting.ranks = static_cast<std::int32_t>(*gpus);
      setting.servers = static_cast<std::int32_t>(*nodes);
      log.settings.push_back(std::move(setting));
    }
    CommRow row;
    row.setting = table->second;
    row.op = comm_type_in(value("op"));
    row.name = names.index(value("op"));
    row.ranks = static_cast<std::int32_t>(*gpus);
    row.bytes = Bytes(*bytes);
    row.time_s = *time * 1e-6;
    row.busbw_Bps = std::max(0.0, to_double(value("busbw_GBps")).value_or(0) * 1e9);
    row.algbw_Bps = std::max(0.0, to_double(value("algbw_GBps")).value_or(0) * 1e9);
    row.in_place = value("in_place") == "1";
    row.line = number;
    log.comms.push_back(row);
  }
  if (log.comms.empty()) {
    throw Error("there is no row of a measurement");
  }
}

}  // namespace

extern const LogReader kCollectiveCsvLogReader;
const LogReader kCollectiveCsvLogReader{
    "collective-csv", "one measured collective a row, with its hardware", sniff, read};

}  // namespace lockstep
