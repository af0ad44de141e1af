// A published table of bus bandwidths in Markdown: a column of message sizes ("1K", "64M") and one
// of GB/s. Sizes in powers of ten that stand for powers of two ("65K", "132K", "524K") are taken
// for the nearest power of two, as such reports mean them. Times follow from the bandwidth.
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "trace/csv_fields.h"
#include "trace/log_reader.h"
#include "trace/nccl_info.h"

namespace lockstep {
namespace {

/// The cells of a row "| a | b |".
std::vector<std::string_view> cells_of(std::string_view line) {
  line = trim(line);
  std::vector<std::string_view> cells;
  if (line.size() < 3 || line.front() != '|') {
    return cells;
  }
  for (const std::string_view cell : split(line.substr(1), '|')) {
    cells.push_back(trim(cell));
  }
  if (!cells.empty() && cells.back().empty()) {
    cells.pop_back();
  }
  return cells;
}

bool is_header(const std::vector<std::string_view>& cells) {
  return cells.size() == 2 && to_lower(cells[0]).find("size") != std::string::npos &&
         to_lower(cells[1]).find("gb/s") != std::string::npos;
}

bool sniff(std::string_view head, std::string_view) {
  std::string_view line;
  while (next_line(head, line)) {
    if (is_header(cells_of(line))) {
      return true;
    }
  }
  return false;
}

/// "132K" -> 131072; 0: no size.
std::int64_t size_of(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    ++digits;
  }
  const auto number = to_int(text.substr(0, digits));
  const std::string unit = to_lower(trim(text.substr(digits)));
  const double scale = unit.empty() || unit == "b" ? 1
                       : unit.starts_with('k')     ? 1024.0
                       : unit.starts_with('m')     ? 1024.0 * 1024
                       : unit.starts_with('g')     ? 1024.0 * 1024 * 1024
                                                   : 0;
  if (!number || *number < 1 || *number > (1 << 30) || scale == 0) {
    return 0;
  }
  const double bytes = static_cast<double>(*number) * scale;
  const double nearest = std::exp2(std::round(std::log2(bytes)));
  return bytes < 1e15
             ? static_cast<std::int64_t>(std::abs(nearest / bytes - 1) < 0.1 ? nearest : bytes)
             : 0;
}

void read(std::string_view text, PhysicalLog& log) {
  CommSetting setting;
  setting.id = log.file.substr(log.file.rfind('/') + 1);
  std::string_view line;
  std::int64_t number = 0;
  bool in_table = false;
  CommType op = CommType::kNone;
  while (next_line(text, line)) {
    ++number;
    if (line.starts_with("## id: ")) {
      setting.id = trim(line.substr(7));
    }
    const auto cells = cells_of(line);
    if (is_header(cells)) {
      in_table = true;
      take_hints(cells[1], setting);
      continue;
    }
    if (!in_table) {
      op = op == CommType::kNone ? comm_type_in(line) : op;
      continue;
    }
    if (cells.size() != 2) {
      in_table = cells.empty() ? false : in_table;
      continue;
    }
    const std::int64_t bytes = size_of(cells[0]);
    const auto busbw = to_double(cells[1]);
    if (bytes == 0 || !busbw || *busbw <= 0) {
      continue;  // the rule under the header, or prose
    }
    CommRow row;
    row.bytes = Bytes(bytes);
    row.busbw_Bps = *busbw * 1e9;
    row.in_place = true;
    row.line = number;
    log.comms.push_back(row);
  }
  const CommType hint = take_hints(setting.id, setting);
  op = hint != CommType::kNone ? hint : op;
  if (setting.ranks == 0) {  // such reports are of one server of eight
    setting.ranks = 8;
    setting.servers = 1;
    log.warnings.add("the table does not tell how many GPUs; 8 in one server are taken");
  }
  if (log.comms.empty()) {
    throw Error("the table has no rows of a size and a bandwidth");
  }
  TextTable names(log.names);
  const double n = setting.ranks;
  const double factor =
      op == CommType::kAllReduce ? 2 * (n - 1) / n
      : op == CommType::kAllGather || op == CommType::kReduceScatter || op == CommType::kAllToAll
          ? (n - 1) / n
          : 1;
  for (CommRow& row : log.comms) {
    row.op = op;
    row.name = names.index(name_of(op));
    row.ranks = setting.ranks;
    row.algbw_Bps = factor > 0 ? row.busbw_Bps / factor : 0;
    row.time_s = row.algbw_Bps > 0 ? static_cast<double>(row.bytes.count()) / row.algbw_Bps : 0;
  }
  log.settings.push_back(std::move(setting));
}

}  // namespace

extern const LogReader kBandwidthTableLogReader;
const LogReader kBandwidthTableLogReader{
    "bandwidth-table", "published tables of bus bandwidth (Markdown)", sniff, read};

}  // namespace lockstep
