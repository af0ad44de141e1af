// DeepSpeed's communication logger (comms_logger, verbose): "comm op: all_gather | time (ms): 1.02
// | msg size: 9.77 KB | algbw (Gbps): 0.08 | busbw (Gbps): 0.07". AICB's console lines are alike.
#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "trace/aicb_bandwidth.h"
#include "trace/csv_fields.h"
#include "trace/log_reader.h"

namespace lockstep {
namespace {

bool sniff(std::string_view head, std::string_view) {
  return head.find("comm op: ") != std::string_view::npos &&
         head.find("time (ms): ") != std::string_view::npos &&
         head.find("msg size: ") != std::string_view::npos;
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
  setting.id = log.file;
  setting.program = "DeepSpeed";
  std::string_view line;
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
    constexpr double kGbps = 1e9 / 8;
    row.algbw_Bps = std::max(0.0, to_double(part(line, "algbw (Gbps): ")).value_or(0)) * kGbps;
    row.busbw_Bps = std::max(0.0, to_double(part(line, "busbw (Gbps): ")).value_or(0)) * kGbps;
    row.line = number;
    log.comms.push_back(row);
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
