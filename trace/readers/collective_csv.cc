// A table of many measurements, one row each, with the hardware beside them: columns gpus, bytes
// and time_us (or time_ns), and as far as there id, source, op, nodes, gpu_type (or gpu), nvlink,
// nic, nccl_version, in_place, busbw_GBps, algbw_GBps. Without an op the file's name tells it,
// without an id the GPUs and their type. Lines that begin with # say nothing.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/wrapped_size.h"

namespace lockstep {
namespace {

/// The next line that is no comment.
bool next_row(std::string_view& text, std::string_view& line, std::int64_t& number) {
  while (next_line(text, line)) {
    ++number;
    if (!line.starts_with('#') && !trim(line).empty()) {
      return true;
    }
  }
  return false;
}

CommType op_in_name(std::string_view file_name) {
  return comm_type_in(file_name.substr(file_name.rfind('/') + 1));
}

/// What of the needed columns is missing; empty: nothing.
std::string missing(const std::vector<std::string>& fields, std::string_view file_name) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(fields, name) != fields.end();
  };
  for (const std::string_view name : {"gpus", "bytes"}) {
    if (!has(name)) {
      return std::string(name);
    }
  }
  if (!has("op") && op_in_name(file_name) == CommType::kNone) {
    return "op";
  }
  return has("time_us") || has("time_ns") ? "" : "time_us";
}

bool sniff(std::string_view head, std::string_view file_name) {
  std::string_view line;
  std::int64_t number = 0;
  std::vector<std::string> fields;
  if (!next_row(head, line, number)) {
    return false;
  }
  split_csv(line, fields);
  return missing(fields, file_name).empty();
}

void read(std::string_view text, PhysicalLog& log) {
  std::string_view line;
  std::vector<std::string> fields;
  std::map<std::string, std::size_t> columns;
  std::size_t width = 0;
  std::int64_t number = 0;
  if (next_row(text, line, number)) {
    split_csv(line, fields);
    width = fields.size();
    for (std::size_t i = 0; i < width; ++i) {
      columns.emplace(fields[i], i);
    }
  }
  if (const std::string name = missing(fields, log.file); !name.empty()) {
    throw Error("no column " + name).expected("gpus, bytes, time_us, and op or a file of its name");
  }
  const auto value = [&](const char* name) -> std::string {
    const auto column = columns.find(name);
    return column == columns.end() ? "" : fields[column->second];
  };
  const CommType named_op = op_in_name(log.file);
  TextTable names(log.names);
  std::map<std::string, std::int32_t> tables;
  while (next_row(text, line, number)) {
    split_csv(line, fields);
    if (fields.size() != width) {
      log.warnings.add("lines with too many or too few fields were passed over");
      continue;
    }
    const auto bytes = to_int(value("bytes")), gpus = to_int(value("gpus")),
               nodes = columns.contains("nodes") ? to_int(value("nodes")) : gpus;
    const bool in_us = columns.contains("time_us");
    const double time = to_double(value(in_us ? "time_us" : "time_ns")).value_or(-1);
    const auto sane = [](const auto& v) { return v && *v >= 1 && *v < (1 << 24); };
    if (!bytes || !(time >= 0) || !sane(gpus) || !sane(nodes) || *nodes > *gpus) {
      log.warnings.add("lines whose numbers make no sense were passed over");
      continue;
    }
    const std::string op = columns.contains("op") ? value("op") : std::string(name_of(named_op));
    const std::string gpu = columns.contains("gpu_type") ? value("gpu_type") : value("gpu");
    const std::string id = columns.contains("id")
                               ? value("id")
                               : fmt::format("{} {} x {}", op, *gpus, gpu.empty() ? "GPU" : gpu);
    const std::string shape =
        fmt::format("{}\n{} {} {} {}", id, *gpus, *nodes, gpu, value("nccl_version"));
    const auto [table, fresh] =
        tables.try_emplace(shape, static_cast<std::int32_t>(log.settings.size()));
    if (fresh) {
      CommSetting setting;
      setting.id = id;
      setting.source = value("source");
      setting.gpu_type = gpu;
      setting.transport = value("nvlink") + " " + value("nic");
      setting.nccl_version = value("nccl_version").substr(0, value("nccl_version").find('+'));
      setting.program = op;
      setting.ranks = static_cast<std::int32_t>(*gpus);
      setting.servers = columns.contains("nodes") ? static_cast<std::int32_t>(*nodes) : 0;
      log.settings.push_back(std::move(setting));
    }
    CommRow row;
    row.setting = table->second;
    row.op = comm_type_in(op);
    row.name = names.index(op);
    row.ranks = static_cast<std::int32_t>(*gpus);
    row.bytes = Bytes(*bytes);
    row.time_s = time * (in_us ? 1e-6 : 1e-9);
    row.busbw_Bps = std::max(0.0, to_double(value("busbw_GBps")).value_or(0) * 1e9);
    row.algbw_Bps = std::max(0.0, to_double(value("algbw_GBps")).value_or(0) * 1e9);
    row.in_place = value("in_place") == "1";
    row.line = number;
    if (unwrap_size(row, log.warnings)) {
      log.comms.push_back(row);
    }
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
