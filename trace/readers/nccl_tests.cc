// The tables of nccl-tests and rccl-tests, of any release, with whatever stands around them: NCCL's
// own log between (and within) the lines, a launcher's tags before them, prose of a report.
// The columns are those of the table's header.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "trace/log_line.h"
#include "trace/log_reader.h"
#include "trace/nccl_info.h"
#include "trace/nccl_table_op.h"

namespace lockstep {
namespace {

enum class Column { kSize, kCount, kType, kRedop, kRoot, kTime, kAlgbw, kBusbw, kWrong, kTimeIn };

std::optional<Column> column_named(std::string_view word) {
  constexpr std::pair<std::string_view, Column> kNames[] = {
      {"size", Column::kSize},        {"count", Column::kCount},  {"type", Column::kType},
      {"redop", Column::kRedop},      {"root", Column::kRoot},    {"time", Column::kTime},
      {"algbw", Column::kAlgbw},      {"busbw", Column::kBusbw},  {"error", Column::kWrong},
      {"#wrong", Column::kWrong},     {"cputime", Column::kTime}, {"time_oop_us", Column::kTime},
      {"time_ip_us", Column::kTimeIn}};
  for (const auto& [name, column] : kNames) {
    if (word == name) {
      return column;
    }
  }
  return std::nullopt;
}

const std::vector<Column>& usual_columns() {
  static const std::vector<Column> columns = {
      Column::kSize,  Column::kCount, Column::kType,  Column::kRedop, Column::kRoot,
      Column::kTime,  Column::kAlgbw, Column::kBusbw, Column::kWrong, Column::kTime,
      Column::kAlgbw, Column::kBusbw, Column::kWrong};
  return columns;
}

bool is_unit(std::string_view word) { return word.starts_with('(') && word.ends_with(')'); }

/// The columns of a header line; empty if it is none.
std::vector<Column> header_columns(const std::vector<std::string_view>& words) {
  std::vector<Column> columns;
  bool size = false, time = false, type = false;
  for (std::string_view word : words) {
    if (word == "#" || is_unit(word)) {
      continue;
    }
    word = word.substr(0, word.find('('));  // "time(us)"
    const auto column = column_named(word);
    if (!column) {
      if (columns.empty() || word != "timestamp") {
        return {};
      }
      break;
    }
    size = size || *column == Column::kSize;
    type = type || *column == Column::kType;
    time = time || *column == Column::kTime;
    columns.push_back(*column);
  }
  return size && time && type ? columns : std::vector<Column>{};
}

class Reader {
 public:
  Reader(std::string_view text, PhysicalLog& log) : rest_(text), log_(log), names_(log.names) {}

  void run() {
    std::string_view line;
    while (next_line(line)) {
      drop_tags(line);
      const std::size_t info = find_nccl_info(line);
      if (info != std::string_view::npos) {
        take_nccl_info(line.substr(info), open());
        line = line.substr(0, info);
      } else if (line.find("CCL version ") != std::string_view::npos) {
        take_nccl_info(line, open());
      }
      words_ = split_blanks(line);
      if (words_.empty()) {
        continue;
      }
      if (line.find("NCCL_") != std::string_view::npos ||
          line.find("RCCL_") != std::string_view::npos) {
        take_nccl_environment(line, open());
      }
      take_line(line);
    }
    finish();
  }

 private:
  bool next_line(std::string_view& line) {
    if (rest_.empty()) {
      return false;
    }
    const std::size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    return true;
  }

  /// What is told now belongs to the table that is open, or to the next one after its rows ended.
  CommSetting& open() { return current_; }

  void take_line(std::string_view line) {
    if (line.starts_with("## ") && take_provenance(line.substr(3))) {
      return;
    }
    if (auto columns = header_columns(words_); !columns.empty()) {
      columns_ = std::move(columns);
      second_time_ = line.rfind("time");
      start_table();
      time_unit_ = 1e-6;
      rate_unit_ = 1e9;
      take_units();
      return;
    }
    if (take_comment(line) || take_row(line)) {
      return;
    }
    for (const std::string_view word : words_) {  // "./build/all_reduce_perf -b 8 …"
      const std::size_t perf = word.find("_perf");
      const std::size_t slash = word.rfind('/', perf);
      if (perf != std::string_view::npos && perf + 5 == word.size()) {
        const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
        start_run();
        current_.program = word.substr(begin);
      }
    }
  }

  /// "## id: …", "## env: …": notes that a collection of logs puts before each.
  bool take_provenance(std::string_view note) {
    const std::size_t colon = note.find(": ");
    const std::string_view key = note.substr(0, note.find(':'));
    if (key != "id" && key != "source" && key != "commit" && key != "env" && key != "status" &&
        key != "form") {
      return false;
    }
    if (colon != std::string_view::npos) {
      const std::string_view value = trim(note.substr(colon + 2));
      if (key == "id") {
        id_ = value;
      }
      log_.facts.emplace(key, value);
      if (key == "env") {
        note_ = value;
      }
    }
    return true;
  }

  bool take_comment(std::string_view line) {
    if (!line.starts_with('#') && words_[0] != "#") {
      return false;
    }
    const auto has = [&](std::string_view word) {
      return line.find(word) != std::string_view::npos;
    };
    if (has("nThread ") || has("ests version ")) {
      start_run();
      const std::size_t library = line.find("nccl-library=");
      if (library != std::string_view::npos) {
        std::string_view digits = line.substr(library + 13);
        digits = digits.substr(0, digits.find_first_not_of("0123456789"));
        current_.nccl_version = nccl_version_of_number(to_int(digits).value_or(0));
      }
    } else if (has("Collective test starting:")) {
      start_run();
      current_.program = words_.back();
    } else if (has(" Rank ") && has(" device ")) {
      take_device(line);
    } else if (has("(B)")) {
      take_units();
    }
    return true;
  }

  /// "(B) (elements) (us) (GB/s)": as nccl-tests has them, or as some reports do.
  void take_units() {
    constexpr std::pair<std::string_view, double> kTimes[] = {
        {"(us)", 1e-6}, {"(ms)", 1e-3}, {"(s)", 1}, {"(ns)", 1e-9}};
    constexpr std::pair<std::string_view, double> kRates[] = {
        {"(GB/s)", 1e9}, {"(MB/s)", 1e6}, {"(Gb/s)", 1e9 / 8}, {"(Gbps)", 1e9 / 8}};
    for (const std::string_view word : words_) {
      for (const auto& [unit, value] : kTimes) {
        time_unit_ = word.ends_with(unit) ? value : time_unit_;
      }
      for (const auto& [unit, value] : kRates) {
        rate_unit_ = word.ends_with(unit) ? value : rate_unit_;
      }
    }
  }

  /// "#  Rank  0 Group  0 Pid 1 on host device  0 [0x27] NVIDIA H100"
  void take_device(std::string_view line) {
    const auto on = std::ranges::find(words_, "on");
    const auto rank = std::ranges::find(words_, "Rank");
    if (on == words_.end() || on + 1 == words_.end() || rank == words_.end() ||
        rank + 1 == words_.end()) {
      return;
    }
    const auto index = to_int(rank[1]);
    if (!index || *index < 0 || *index >= (1 << 20)) {
      return;
    }
    start_run();
    auto& hosts = current_.hosts;
    hosts.resize(std::max(hosts.size(), static_cast<std::size_t>(*index) + 1));
    hosts[static_cast<std::size_t>(*index)] = on[1];
    const std::size_t bracket = line.rfind(']');
    if (bracket != std::string_view::npos) {
      current_.gpu_type = trim(line.substr(bracket + 1));
    }
  }

  /// What describes a run begins anew after the rows of another one.
  void start_run() {
    if (in_rows_) {
      CommSetting next;
      next.env = current_.env;
      next.nccl_version = current_.nccl_version;
      next.program = current_.program;
      current_ = std::move(next);
      in_rows_ = false;
      table_ = -1;
    }
  }

  void start_table() {
    if (in_rows_) {
      in_rows_ = false;
      table_ = -1;
    }
  }

  /// Where the current table stands in log_.settings.
  std::int32_t table() {
    if (table_ < 0) {
      table_ = static_cast<std::int32_t>(log_.settings.size());
      log_.settings.emplace_back();
    }
    in_rows_ = true;
    return table_;
  }

  /// Whether the words are a row's beginning: whole numbers and a type where the columns want them.
  bool fits(const std::vector<Column>& columns, std::size_t words) const {
    for (std::size_t i = 0; i < std::min(words, columns.size()); ++i) {
      const Column column = columns[i];
      const std::string_view word = words_[i];
      if ((column == Column::kSize || column == Column::kCount) && to_int(word).value_or(-1) < 0) {
        return false;
      }
      if (column == Column::kType && nccl_element_bytes(word) == 0) {
        return false;
      }
    }
    return true;
  }

  bool take_row(std::string_view line) {
    if (pending_ && take_rest()) {
      return true;
    }
    const std::vector<Column>& columns = !columns_.empty() ? columns_ : usual_columns();
    const auto first_time =
        static_cast<std::size_t>(std::ranges::find(columns, Column::kTime) - columns.begin());
    if (words_.size() < std::min<std::size_t>(first_time, 3) || !to_int(words_[0]) ||
        !fits(columns, words_.size())) {
      return false;
    }
    if (words_.size() <= first_time) {  // NCCL's log came between, maybe without a blank
      if (words_.size() + 1 >= first_time && words_.size() > 2) {
        pending_ = std::vector<std::string>(words_.begin(), words_.end());
        pending_->resize(first_time, "-1");
      }
      return true;
    }
    take_numbers(columns, line);
    return true;
  }

  /// The times of a row whose beginning stood on an earlier line.
  bool take_rest() {
    const std::vector<Column>& columns = !columns_.empty() ? columns_ : usual_columns();
    const std::size_t rest = columns.size() - pending_->size();
    if (words_.size() != rest) {
      return false;
    }
    for (const std::string_view word : words_) {
      if (!to_double(word) && word != "N/A") {
        return false;
      }
    }
    std::vector<std::string_view> whole(pending_->begin(), pending_->end());
    whole.insert(whole.end(), words_.begin(), words_.end());
    words_ = std::move(whole);
    take_numbers(columns, {});
    pending_.reset();
    return true;
  }

  void take_numbers(const std::vector<Column>& columns, std::string_view line) {
    CommRow row;
    row.line = static_cast<std::int64_t>(number_);
    bool any = false, odd = false;
    int time = -1;
    NcclTableRow about;
    const auto flush = [&] {
      if (row.time_s > 0) {
        row.setting = table();
        log_.comms.push_back(row);
        any = true;
        about.bytes = row.bytes.count();
        about.algbw_Bps = row.algbw_Bps;
        about.busbw_Bps = row.busbw_Bps;
        keep_fastest(about);
      }
      row.time_s = row.algbw_Bps = row.busbw_Bps = row.wrong = 0;
    };
    // Only one result: it stands in the right half of the line where out-of-place is left blank.
    const bool lone_right = second_time_ != std::string_view::npos && !line.empty() &&
                            words_.size() + 4 == columns.size() && line.size() > second_time_ + 8;
    for (std::size_t i = 0; i < std::min(columns.size(), words_.size()); ++i) {
      const auto number = to_double(words_[i]);
      switch (columns[i]) {
        case Column::kSize:
          row.bytes = Bytes(to_int(words_[i]).value_or(0));
          break;
        case Column::kType:
          if (current_.dtype.empty()) {
            current_.dtype = words_[i];
          }
          about.type = words_[i];
          break;
        case Column::kTime:
        case Column::kTimeIn:
          flush();
          ++time;
          row.in_place = time > 0 || columns[i] == Column::kTimeIn || lone_right;
          odd = odd || (!number && words_[i] != "N/A") || number.value_or(0) < 0;
          row.time_s = number.value_or(0) * time_unit_;
          break;
        case Column::kAlgbw:
          row.algbw_Bps = std::max(0.0, number.value_or(0) * rate_unit_);
          break;
        case Column::kBusbw:
          row.busbw_Bps = std::max(0.0, number.value_or(0) * rate_unit_);
          break;
        case Column::kWrong:
          row.wrong = number.value_or(0) >= 1 ? *number : 0;
          break;
        case Column::kCount:
          about.elements = to_int(words_[i]).value_or(0);
          break;
        case Column::kRedop:
          about.reduction = words_[i];
          break;
        case Column::kRoot:
          about.root = to_int(words_[i]).value_or(-1);
          break;
      }
    }
    flush();
    if (odd || (!any && row.bytes > Bytes())) {
      log_.warnings.add("rows of a table without a time were passed over");
    }
    if (any) {
      log_.settings.back() = current_;
    }
  }

  /// Of each table, the row that says most of its operation and ranks.
  void keep_fastest(const NcclTableRow& row) {
    fastest_.resize(log_.settings.size());
    NcclTableRow& kept = fastest_[static_cast<std::size_t>(table_)];
    if (row.algbw_Bps > kept.algbw_Bps || kept.bytes == 0) {
      kept = row;
    }
  }

  void finish();
  void name_ranks(CommSetting& setting, std::int32_t index);

  std::string_view rest_;
  PhysicalLog& log_;
  TextTable names_;
  std::size_t number_ = 0;
  std::vector<std::string_view> words_;
  std::vector<Column> columns_;
  std::size_t second_time_ = std::string_view::npos;
  double time_unit_ = 1e-6, rate_unit_ = 1e9;
  CommSetting current_;
  bool in_rows_ = false;
  std::int32_t table_ = -1;
  std::vector<NcclTableRow> fastest_;  // by table
  std::optional<std::vector<std::string>> pending_;
  std::string id_, note_;
};

/// Ranks from the ratio of bus to algorithm bandwidth (nccl-tests' PERFORMANCE.md) of a table's
/// fastest row; 0 where it says too little.
std::int32_t ranks_by_ratio(const NcclTableRow& fastest, CommType op) {
  const double algbw = fastest.algbw_Bps, busbw = fastest.busbw_Bps;
  if (algbw < 1e9) {
    return 0;
  }
  const double ratio = busbw / algbw / (op == CommType::kAllReduce ? 2 : 1);
  const double ranks = 1 / (1 - ratio), slack = 0.006e9 / algbw * ranks * ranks;
  const bool told = op == CommType::kAllReduce || op == CommType::kAllGather ||
                    op == CommType::kReduceScatter || op == CommType::kAllToAll;
  return told && ratio < 1 && slack < 0.4 && ranks < 4096
             ? static_cast<std::int32_t>(std::lround(ranks))
             : 0;
}

void Reader::name_ranks(CommSetting& setting, std::int32_t index) {
  std::set<std::string> hosts(setting.hosts.begin(), setting.hosts.end());
  hosts.erase("");
  if (!setting.hosts.empty()) {
    setting.ranks = static_cast<std::int32_t>(setting.hosts.size());
    if (!hosts.empty()) {
      setting.servers = static_cast<std::int32_t>(hosts.size());
    }
  }
  const NcclTableRow& fastest = fastest_[static_cast<std::size_t>(index)];
  CommType op = comm_type_in(setting.program);
  const CommType hint = take_hints(setting.id, setting);
  const CommType file = take_hints(std::filesystem::path(log_.file).filename().string(), setting);
  const bool unknown = setting.program.empty();
  if (unknown && op == CommType::kNone) {
    op = hint != CommType::kNone ? hint : file != CommType::kNone ? file : op_of(fastest);
  }
  if (setting.ranks == 0) {
    setting.ranks = ranks_by_ratio(fastest, op);
  }
  if (setting.servers == 0 && setting.ranks == 1) {
    setting.servers = 1;
  }
  if (op == CommType::kNone && unknown) {
    log_.warnings.add("a table does not say which operation it measures");
  }
  const std::int32_t name =
      names_.index(unknown ? std::string(name_of(op)) : std::string(setting.program));
  for (CommRow& row : log_.comms) {
    if (row.setting == index) {
      row.op = op;
      row.name = name;
      row.ranks = setting.ranks;
    }
  }
}

void Reader::finish() {
  if (pending_) {
    log_.warnings.add("a row of a table is cut off");
  }
  if (log_.comms.empty()) {
    throw Error("there is no table of measurements")
        .expected("rows of nccl-tests: size, count, type, …, time, algbw, busbw");
  }
  const std::string base =
      !id_.empty() ? id_ : std::filesystem::path(log_.file).filename().string();
  for (std::size_t i = 0; i < log_.settings.size(); ++i) {
    CommSetting& setting = log_.settings[i];
    take_nccl_environment(note_, setting);
    setting.id = log_.settings.size() == 1 ? base : fmt::format("{}#{}", base, i + 1);
    name_ranks(setting, static_cast<std::int32_t>(i));
  }
}

bool sniff(std::string_view head, std::string_view) {
  if (head.find("Collective test starting") != std::string_view::npos ||
      head.find("# nThread ") != std::string_view::npos ||
      head.find("# Using devices") != std::string_view::npos) {
    return true;
  }
  std::size_t lines = 0;
  while (!head.empty() && lines < 4000) {
    const std::size_t end = head.find('\n');
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
    ++lines;
    drop_tags(line);
    const auto words = split_blanks(line.substr(0, 400));
    if (!header_columns(words).empty()) {
      return true;
    }
    if (words.size() >= 8 && to_int(words[0]) && to_int(words[1]) &&
        nccl_element_bytes(words[2]) > 0) {
      return true;
    }
  }
  return false;
}

void read(std::string_view text, PhysicalLog& log) { Reader(text, log).run(); }

}  // namespace

extern const LogReader kNcclTestsLogReader;
const LogReader kNcclTestsLogReader{"nccl-tests", "output of nccl-tests and rccl-tests", sniff,
                                    read};

}  // namespace lockstep
