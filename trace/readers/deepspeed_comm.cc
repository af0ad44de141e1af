// DeepSpeed's communication logger (comms_logger, verbose): "comm op: all_gather | time (ms): 1.02
// | msg size: 9.77 KB | algbw (Gbps): 0.08 | busbw (Gbps): 0.07". AICB's console lines are alike.
// Without such lines, the table that log_summary() prints: an operation, below it a row a size with
// the count and the average latency.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "trace/aicb_bandwidth.h"
#include "trace/csv_fields.h"
#include "trace/log_reader.h"

namespace lockstep {
namespace {

bool is_summary(std::string_view line) {
  return line.find("Comm. Op") != std::string_view::npos &&
         line.find("Message Size") != std::string_view::npos &&
         line.find("Avg Latency(ms)") != std::string_view::npos;
}

bool sniff(std::string_view head, std::string_view) {
  return is_summary(head) || (head.find("comm op: ") != std::string_view::npos &&
                              head.find("time (ms): ") != std::string_view::npos &&
                              head.find("msg size: ") != std::string_view::npos);
}

constexpr double kGbps = 1e9 / 8;

/// DeepSpeed notes what a rank gives (get_msg_size_from_args), and its bandwidths count the whole
/// of an all-gather: how many ranks there are follows from both, as far as two digits of
/// milliseconds tell: of those that they leave open a power of two, where there is one.
void take_whole_gather(CommRow& row) {
  constexpr double kHalfDigit = 0.005e-3;  // seconds
  if (row.op != CommType::kAllGather || row.bytes <= Bytes() || row.algbw_Bps <= 0) {
    return;
  }
  const double times = row.algbw_Bps / static_cast<double>(row.bytes.count());
  double ranks = std::round(times * row.time_s);
  const double most = times * (row.time_s + kHalfDigit);
  const double power = std::exp2(std::floor(std::log2(std::max(1.0, most))));
  ranks = power >= times * (row.time_s - kHalfDigit) ? power : ranks;
  if (ranks >= 2 && ranks < (1 << 24)) {
    row.bytes = row.bytes * static_cast<std::int64_t>(ranks);
    row.ranks = static_cast<std::int32_t>(ranks);
  }
}

/// "98.25 MB  1  8317.12  8317.12  0.20  0.19": size, count, latencies in ms, rates.
std::optional<CommRow> summary_row(const std::vector<std::string_view>& words) {
  if (words.size() < 7) {
    return std::nullopt;
  }
  const auto bytes = aicb_size(std::string(words[0]) + " " + std::string(words[1]));
  const auto count = to_int(words[2]);
  const auto average = to_double(words[4]);
  if (!bytes || !to_double(words[0]) || !count || *count < 1 || !average || *average < 0) {
    return std::nullopt;
  }
  CommRow row;
  row.bytes = Bytes(*bytes);
  row.time_s = *average * 1e-3;
  row.algbw_Bps = std::max(0.0, to_double(words[5]).value_or(0)) * kGbps;
  row.busbw_Bps = std::max(0.0, to_double(words[6]).value_or(0)) * kGbps;
  return row;
}

/// The rows of the summaries in a text.
void read_summary(std::string_view text, TextTable& names, PhysicalLog& log) {
  std::string_view line;
  std::int64_t number = 0;
  bool within = false;
  std::string op;
  while (next_line(text, line)) {
    ++number;
    const auto words = split_blanks(line);
    if (is_summary(line)) {
      within = true;
      op.clear();
    } else if (within && words.size() == 1) {
      op = words[0].substr(0, 100);
    } else if (auto row = within && !op.empty() ? summary_row(words) : std::nullopt) {
      row->op = comm_type_in(op);
      row->name = names.index(op);
      row->line = number;
      take_whole_gather(*row);
      log.comms.push_back(*row);
    } else if (!words.empty()) {
      within = false;
    }
  }
}

/// What stands between "key" and the next bar.
std::string_view part(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) {
    return {};
  }
  line.remove_prefix(at + key.size());
  return trim(line.substr(0, line.find('|')));
}

void read(std::string_view text, PhysicalLog& log) {
  TextTable names(log.names), groups(log.groups);
  CommSetting setting;
  setting.id = log.file.substr(log.file.rfind('/') + 1);
  setting.program = "DeepSpeed";
  std::string_view line;
  const std::string_view whole = text;
  std::int64_t number = 0;
  while (next_line(text, line)) {
    ++number;
    const std::string_view op = part(line, "comm op: ");
    if (op.empty()) {
      continue;
    }
    const auto time = to_double(part(line, "time (ms): "));
    const std::string_view size_text = part(line, "msg size: ");
    const auto size = aicb_size(size_text);
    if (!time || *time < 0 || !size || size_text.empty()) {
      log.warnings.add("lines of communications without a time or a size");
      continue;
    }
    CommRow row;
    row.op = comm_type_in(op);
    row.name = names.index(op.substr(0, 100));
    const std::string_view group = part(line, "comm group: ");
    if (!group.empty()) {
      row.group = groups.index(group.substr(0, 100));
    }
    row.bytes = Bytes(*size);
    row.time_s = *time * 1e-3;
    row.algbw_Bps = std::max(0.0, to_double(part(line, "algbw (Gbps): ")).value_or(0)) * kGbps;
    row.busbw_Bps = std::max(0.0, to_double(part(line, "busbw (Gbps): ")).value_or(0)) * kGbps;
    row.line = number;
    take_whole_gather(row);
    log.comms.push_back(row);
  }
  if (log.comms.empty()) {
    read_summary(whole, names, log);
  }
  if (log.comms.empty()) {
    throw Error("there is no line of a communication").expected("comm op: … | time (ms): …");
  }
  log.settings.push_back(std::move(setting));
}

}  // namespace

extern const LogReader kDeepspeedCommLogReader;
const LogReader kDeepspeedCommLogReader{"deepspeed-comm", "DeepSpeed's communication log", sniff,
                                        read};

}  // namespace lockstep
