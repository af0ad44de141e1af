// DeepSpeed's communication logger (comms_logger, verbose): "comm op: all_gather | time (ms): 1.02
// | msg size: 9.77 KB | algbw (Gbps): 0.08 | busbw (Gbps): 0.07". AICB's console lines are alike.
// Without such lines, the table that log_summary() prints: an operation, below it a row a size with
// the count and the average latency.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/aicb_bandwidth.h"
#include "trace/aicb_groups.h"
#include "trace/log_line.h"
#include "trace/log_reader.h"
#include "trace/nccl_table_op.h"

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

/// Ranks by the bandwidths of a line, as printed; 0: they do not tell. DeepSpeed's algorithm
/// bandwidth of an all-reduce is of twice its size, AICB's and that of some releases is not.
std::int32_t ranks_told(const CommRow& row, double unit) {
  NcclTableRow printed;
  printed.algbw_Bps = row.algbw_Bps / unit * 1e9;
  printed.busbw_Bps = row.busbw_Bps / unit * 1e9;
  const bool twice =
      row.op == CommType::kAllReduce && unit == kGbps && row.busbw_Bps < row.algbw_Bps;
  return ranks_by_ratio(printed, twice ? CommType::kAllGather : row.op);
}

/// DeepSpeed notes what a rank gives (get_msg_size_from_args), and its bandwidths count the whole
/// of an all-gather, of all of the job's ranks. Where their ratio does not tell these: how many
/// ranks there are follows from both, as far as two digits of milliseconds tell: of those that they
/// leave open a power of two, where there is one.
void take_whole_gather(CommRow& row, std::int32_t told) {
  constexpr double kHalfDigit = 0.005e-3;  // seconds
  if (row.op != CommType::kAllGather || row.bytes <= Bytes() || row.algbw_Bps <= 0) {
    return;
  }
  const double times = row.algbw_Bps / static_cast<double>(row.bytes.count());
  double ranks = std::round(times * row.time_s);
  const double most = times * (row.time_s + kHalfDigit);
  const double power = std::exp2(std::floor(std::log2(std::max(1.0, most))));
  ranks = told > 0 ? told : power >= times * (row.time_s - kHalfDigit) ? power : ranks;
  if (ranks >= 2 && ranks < (1 << 24)) {
    row.bytes = row.bytes * static_cast<std::int64_t>(ranks);
    row.ranks = static_cast<std::int32_t>(ranks);
  }
}

/// Finds how many ranks communicate: DeepSpeed tells no groups, AICB those of each line.
void take_ranks(PhysicalLog& log, CommSetting& setting) {
  std::map<std::int32_t, std::pair<double, std::int32_t>> told;  // by group: fastest line, ranks
  for (const CommRow& row : log.comms) {
    const std::int32_t ranks = ranks_told(row, row.group < 0 ? kGbps : kAicbUnit);
    auto& best = told[row.group];
    best = ranks > 0 ? std::max(best, {row.algbw_Bps, ranks}) : best;
  }
  bool job = false, unknown = false;
  for (CommRow& row : log.comms) {
    const std::int32_t ranks = told[row.group].second;
    if (row.group < 0) {
      job = true;
      take_whole_gather(row, ranks);
    } else {
      row.ranks = ranks;
      unknown = unknown || ranks == 0;
    }
  }
  if (told.size() > (job ? 1 : 0)) {
    place_aicb_groups(log, setting);
  }
  if (job) {
    setting.ranks = std::max(setting.ranks, told[-1].second);
    setting.ranks_guessed = true;
    if (told[-1].second == 0) {
      log.warnings.add(
          "the log tells no groups: every communication is taken to be of all of the job's ranks");
    }
  }
  if (unknown) {
    log.warnings.add("groups whose size their bandwidths do not tell are taken to be the job");
  }
}

/// "98.25 MB  1  8317.12  8317.12  0.20  0.19": size ("0B" of barriers), count, latencies in ms,
/// rates.
std::optional<CommRow> summary_row(std::vector<std::string_view> words) {
  std::string size(words.empty() ? std::string_view() : words[0]);
  if (!size.empty() && is_digit(size.back()) && words.size() > 1) {
    size += " " + std::string(words[1]);
    words.erase(words.begin());
  }
  if (words.size() < 6 || !is_digit(size.front())) {
    return std::nullopt;
  }
  const auto bytes = aicb_size(size);
  const auto count = to_int(words[1]);
  const auto average = to_double(words[3]);
  if (!bytes || !count || *count < 1 || !average || *average < 0) {
    return std::nullopt;
  }
  CommRow row;
  row.bytes = Bytes(*bytes);
  row.time_s = *average * 1e-3;
  row.algbw_Bps = std::max(0.0, to_double(words[4]).value_or(0)) * kGbps;
  row.busbw_Bps = std::max(0.0, to_double(words[5]).value_or(0)) * kGbps;
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
    drop_tags(line);
    const auto words = split_blanks(line);
    if (is_summary(line)) {
      within = true;
      op.clear();
    } else if (within && !words.empty() && !is_digit(words[0].front()) &&
               (words.size() == 1 || words[1] == "|")) {  // "all_reduce | [Caller Func: forward]"
      op = words[0].substr(0, 100);
    } else if (auto row = within && !op.empty() ? summary_row(words) : std::nullopt) {
      row->op = comm_type_in(op);
      row->name = names.index(op);
      row->line = number;
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
    std::string_view group = part(line, "comm group: ");
    group.remove_prefix(group.starts_with("CommGroup.") ? 10 : 0);
    if (!group.empty()) {
      row.group = groups.index(group.substr(0, 100));
    }
    row.bytes = Bytes(*size);
    row.time_s = *time * 1e-3;
    const bool aicb = row.group >= 0;
    const auto rate = [&](const char* key) {
      return std::max(0.0, to_double(part(line, key)).value_or(0)) * (aicb ? kAicbUnit : kGbps);
    };
    row.algbw_Bps = rate(aicb ? "algbw (GB): " : "algbw (Gbps): ");
    row.busbw_Bps = rate(aicb ? "busbw (GB): " : "busbw (Gbps): ");
    row.line = number;
    log.comms.push_back(row);
  }
  if (log.comms.empty()) {
    read_summary(whole, names, log);
  }
  if (log.comms.empty()) {
    throw Error("there is no line of a communication")
        .expected("comm op: … | time (ms): … | msg size: …, or the table of log_summary()");
  }
  take_ranks(log, setting);
  log.settings.push_back(std::move(setting));
}

}  // namespace

extern const LogReader kDeepspeedCommLogReader;
const LogReader kDeepspeedCommLogReader{"deepspeed-comm", "DeepSpeed's communication log", sniff,
                                        read};

}  // namespace lockstep
