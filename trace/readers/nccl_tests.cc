// The tables of nccl-tests and rccl-tests, of any release, with whatever stands around them: NCCL's
// own log between (and within) the lines, a launcher's tags before them, prose of a report.
// The columns are those of the table's header.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "trace/launch_line.h"
#include "trace/log_line.h"
#include "trace/log_reader.h"
#include "trace/nccl_info.h"
#include "trace/nccl_line.h"
#include "trace/nccl_table.h"
#include "trace/rate_unit.h"
#include "trace/tagged_runs.h"
#include "trace/wrapped_size.h"

namespace lockstep {
namespace {

// A word of a row that NCCL's log made a part of its own: no root, no wrong elements.
constexpr const char* kLost = "-1";

class Reader {
 public:
  Reader(std::string_view text, PhysicalLog& log) : rest_(text), log_(log), names_(log.names) {}

  void run() {
    std::string_view line;
    while (next_line(line)) {
      drop_tags(line);
      prefix_.drop(line);
      const std::size_t info = skip_glued_number(line, find_nccl_info(line), current_.hosts);
      if (info != std::string_view::npos) {
        take_nccl_info(line.substr(info), current_);
        line = line.substr(0, info);
      } else if (line.find("CCL version ") != std::string_view::npos) {
        take_nccl_info(line, current_);
      }
      words_ = split_blanks(line);
      if (words_.empty()) {
        continue;
      }
      if (info != std::string_view::npos) {
        take_line(line, /*cut=*/true);  // what stands before: maybe a part of a row
        continue;
      }
      const bool begins = begins_run();
      if (line.find("NCCL_") != std::string_view::npos ||
          line.find("RCCL_") != std::string_view::npos) {
        take_environment(line, begins);
      }
      take_line(line, /*cut=*/false);
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
    unended_ = end == std::string_view::npos;
    rest_.remove_prefix(unended_ ? rest_.size() : end + 1);
    ++number_;
    return true;
  }

  /// Whether the line is the command of a program of nccl-tests, which begins a run.
  bool begins_run() {
    program_ = {};
    if (words_[0].starts_with('#')) {
      return false;
    }
    program_ = started_program(words_);
    if (!program_.empty()) {
      start_run();
    }
    return !program_.empty();
  }

  /// What is set on a command line is of its run alone; what stands elsewhere (exports, notes) of
  /// all that follow, until it is set otherwise.
  void take_environment(std::string_view line, bool command) {
    if (line.starts_with('#') && !line.starts_with("## env:") &&
        !(line.starts_with("#SBATCH") && line.find("--export") != std::string_view::npos)) {
      return;  // commented out
    }
    if (const auto unset = std::ranges::find(words_, "unset"); unset != words_.end()) {
      for (auto name = unset + 1; name != words_.end(); ++name) {
        const std::string variable(name->substr(0, name->find(';')));
        current_.env.erase(variable);
        session_.erase(variable);
        if (name->ends_with(';')) {
          break;
        }
      }
    }
    CommSetting told;
    take_nccl_environment(line, told);
    for (const auto& [name, value] : told.env) {
      current_.env.insert_or_assign(name, value);
      if (!command) {
        session_.insert_or_assign(name, value);
      }
    }
  }

  /// `cut`: NCCL's log stands behind the line.
  void take_line(std::string_view line, bool cut) {
    if (line.starts_with("## ") && take_provenance(line.substr(3))) {
      return;
    }
    if (auto columns = nccl_header_columns(words_); !columns.empty()) {
      close_pending();
      // Release 1 tells no units: its times are milliseconds.
      const bool first_release = std::ranges::find(words_, "res") != words_.end();
      columns_ = std::move(columns);
      layout_ = nccl_layout(words_, line);
      in_place_only_ = layout_.time_ends.size() == 1 && std::exchange(in_place_next_, false);
      start_table();
      time_unit_ = first_release ? 1e-3 : 1e-6;
      unit_told_ = false;
      rate_unit_ = 1e9;
      take_units();
      return;
    }
    if (take_comment(line) || take_row(line, cut)) {
      return;
    }
    if (!program_.empty()) {
      current_.program = program_;
      program_told_ = false;
      launch_ = launch_line(line);
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
    if (has("nThread") || has("ests version ")) {
      start_run();
      take_process(line);
      const std::size_t library = line.find("nccl-library=");
      if (library != std::string_view::npos) {
        std::string_view digits = line.substr(library + 13);
        digits = digits.substr(0, digits.find_first_not_of("0123456789"));
        current_.nccl_version = nccl_version_of_number(to_int(digits).value_or(0));
      }
    } else if (has("Collective test starting:")) {
      start_run();
      current_.program = words_.back();
      program_told_ = true;
    } else if (has(" Rank ") && has(" device ")) {
      take_device(line);
    } else if (has("(B)")) {
      take_units();
    } else if (has("in-place")) {  // above the header; -O 0 of rccl-tests: alone
      in_place_next_ = !has("out-of-place");
    }
    return true;
  }

  /// "# nThread 1 nGpus 8 …": GPUs of a process.
  void take_process(std::string_view line) {
    std::int64_t gpus = 1;
    for (const std::string_view word : {"nThread", "nGpus"}) {
      const std::size_t at = line.find(word);
      if (at == std::string_view::npos) {
        return;
      }
      std::string_view rest = line.substr(at + word.size());
      rest.remove_prefix(std::min(rest.find_first_not_of(": "), rest.size()));
      gpus *= std::clamp<std::int64_t>(
          to_int(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(1), 1, 4096);
    }
    process_gpus_ = static_cast<std::int32_t>(gpus);
  }

  /// "(B) (elements) (us) (GB/s)": as nccl-tests has them, or as some reports do.
  void take_units() {
    constexpr std::pair<std::string_view, double> kTimes[] = {
        {"(us)", 1e-6}, {"(ms)", 1e-3}, {"(s)", 1}, {"(ns)", 1e-9}};
    for (const std::string_view word : words_) {
      for (const auto& [unit, value] : kTimes) {
        time_unit_ = word.ends_with(unit) ? value : time_unit_;
        unit_told_ = unit_told_ || word.ends_with(unit);
      }
      if (word.ends_with(')') && word.find('(') != std::string_view::npos) {
        rate_unit_ = rate_unit(word.substr(word.find('('))).value_or(rate_unit_);
      }
    }
  }

  /// "#  Rank  0 Group  0 Pid 1 on host device  0 [0x27] NVIDIA H100"
  void take_device(std::string_view line) {
    auto on = std::ranges::find(words_, "on");
    on = on == words_.end() ? std::ranges::find(words_, "uses") : on;  // release 1: one process
    const auto rank = std::ranges::find(words_, "Rank");
    if (on == words_.end() || on + 1 == words_.end() || rank == words_.end() ||
        rank + 1 == words_.end()) {
      return;
    }
    const auto index = to_int(rank[1]);
    if (!index || *index < 0 || *index >= (1 << 20)) {
      return;
    }
    if (in_rows_) {
      start_run();
    }
    auto& hosts = current_.hosts;
    hosts.resize(std::max(hosts.size(), static_cast<std::size_t>(*index) + 1));
    hosts[static_cast<std::size_t>(*index)] = *on == "uses" ? "localhost" : on[1];
    const auto group = std::ranges::find(words_, "Group");
    groups_.resize(hosts.size(), 0);
    groups_[static_cast<std::size_t>(*index)] =
        group == words_.end() || group + 1 == words_.end() ? 0 : to_int(group[1]).value_or(0);
    const std::size_t bracket = line.rfind(']');
    if (bracket != std::string_view::npos) {
      current_.gpu_type = trim(line.substr(bracket + 1));
    }
  }

  /// What describes a run begins anew after the rows of another one, or after the ranks of one that
  /// failed before its first row.
  void start_run() {
    close_pending();
    if (in_rows_ || !current_.hosts.empty()) {
      CommSetting next;
      next.env = session_;
      next.program = current_.program;
      current_ = std::move(next);
      program_told_ = false;
      launch_ = {};
      groups_.clear();
      process_gpus_ = 0;
      in_rows_ = false;
      table_ = -1;
      sizes_ = {};
    }
  }

  void start_table() {
    if (in_rows_) {
      in_rows_ = false;
      table_ = -1;
      sizes_ = {};
    }
  }

  /// Where the current table stands in log_.settings.
  std::int32_t table() {
    if (table_ < 0) {
      table_ = static_cast<std::int32_t>(log_.settings.size());
      log_.settings.emplace_back();
      const std::int32_t gpus = process_gpus_ > 0 ? process_gpus_ : launch_.process_gpus;
      tables_.push_back({launch_, gpus, groups_, {}, program_told_});
    }
    in_rows_ = true;
    return table_;
  }

  bool take_row(std::string_view line, bool cut) {
    if (layout_.timestamps) {
      drop_timestamp(words_);
    }
    if (pending_ && take_rest(cut)) {
      return true;
    }
    const std::vector<NcclColumn>& columns =
        !columns_.empty() ? columns_ : usual_nccl_columns(words_);
    const auto first_time =
        static_cast<std::size_t>(std::ranges::find(columns, NcclColumn::kTime) - columns.begin());
    if (words_.size() < std::min<std::size_t>(first_time, cut ? 2 : 3) || !to_int(words_[0]) ||
        !nccl_row_fits(columns, words_)) {
      return false;
    }
    const std::size_t end = nccl_piece_end(columns, words_.size());
    if (words_.size() <= first_time || (cut && end > 0 && end < columns.size())) {
      if (end > 0) {
        close_pending();
        pending_ = std::vector<std::string>(words_.begin(), words_.end());
        pending_->resize(end, kLost);
        pending_line_ = number_;
      }
      return true;
    }
    close_pending();
    if (!layout_.timestamps && words_.size() > columns.size() &&
        to_double(words_[columns.size()])) {
      log_.warnings.add("rows of more columns than are known of their table were passed over");
      return true;
    }
    take_numbers(columns, line);
    return true;
  }

  /// What follows of a row that was cut: one or both results, the last of them maybe cut again.
  bool take_rest(bool cut) {
    const std::vector<NcclColumn>& columns = !columns_.empty() ? columns_ : usual_nccl_columns({});
    const std::size_t end = nccl_piece_end(columns, pending_->size() + words_.size());
    const bool whole = pending_->size() + words_.size() == columns.size();
    if (end <= pending_->size() || (!cut && !whole)) {
      return false;
    }
    for (const std::string_view word : words_) {
      if (!to_double(word) && word != "N/A") {
        return false;
      }
    }
    pending_->insert(pending_->end(), words_.begin(), words_.end());
    pending_->resize(end, kLost);
    if (end == columns.size()) {
      close_pending();
    }
    return true;
  }

  /// Takes what there is of a row that was cut.
  void close_pending() {
    if (!pending_) {
      return;
    }
    const std::vector<NcclColumn>& columns = !columns_.empty() ? columns_ : usual_nccl_columns({});
    if (pending_->size() < columns.size()) {
      log_.warnings.add("a row of a table is cut off");
    }
    const std::vector<std::string> row = *std::exchange(pending_, std::nullopt);
    if (std::ranges::find(columns, NcclColumn::kTime) - columns.begin() < std::ssize(row)) {
      const std::vector<std::string_view> words(row.begin(), row.end());
      const auto next = std::exchange(words_, words);
      const bool unended = std::exchange(unended_, unended_ && pending_line_ == number_);
      const std::size_t number = std::exchange(number_, pending_line_);
      take_numbers(columns, {});
      words_ = next;
      number_ = number;
      unended_ = unended;
    }
  }

  /// How many of the row's words are whole results: each a time, and the rates that the columns
  /// have beside it. The last word of a line that does not end may be a part of one, unless all are
  /// there; then a time at the end shows by being far below the one before it, or where it is the
  /// row's only one far below that of a smaller size in the row before.
  std::size_t whole_words(const std::vector<NcclColumn>& columns) const {
    const bool all = words_.size() >= columns.size();
    const std::size_t whole = words_.size() - (unended_ && !all ? 1 : 0);
    std::size_t result = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const bool time = columns[i] == NcclColumn::kTime || columns[i] == NcclColumn::kTimeIn;
      if (time && i >= words_.size()) {
        return words_.size();  // the next result has not begun
      }
      if (time && unended_ && i + 1 == words_.size()) {
        const double here = to_double(words_[i]).value_or(0);
        if (result > 0 ? 4 * here < to_double(words_[result]).value_or(0)
                       : 4 * here * time_unit_ < time_before()) {
          return i;
        }
      }
      result = time ? i : result;
      if (i >= whole &&
          (time || columns[i] == NcclColumn::kAlgbw || columns[i] == NcclColumn::kBusbw)) {
        return result;
      }
    }
    return std::min(words_.size(), columns.size());
  }

  /// The time of the table's row before, where that is of a smaller size than the line's; else 0.
  double time_before() const {
    if (!in_rows_ || log_.comms.empty() || log_.comms.back().setting != table_ ||
        log_.comms.back().bytes >= Bytes(to_int(words_[0]).value_or(0))) {
      return 0;
    }
    return log_.comms.back().time_s;
  }

  void take_numbers(const std::vector<NcclColumn>& columns, std::string_view line) {
    CommRow row;
    row.line = static_cast<std::int64_t>(number_);
    bool any = false, odd = false;
    bool rate_cut = false;  // maybe: the last word of a file that does not end its line
    int time = -1;
    NcclTableRow about;
    const auto flush = [&] {
      const Bytes written = row.bytes;
      if (row.time_s > 0) {
        if (std::string kind = fmt::format("{} {} {}", about.type, about.reduction, about.root);
            kind != swept_) {
          swept_ = std::move(kind);
          sizes_ = {};
        }
      }
      if (row.time_s > 0 &&
          !(unwrap_size(row, log_.warnings) && sizes_.may_be(row, log_.warnings))) {
        any = true;  // and told
      } else if (row.time_s > 0) {
        row.setting = table();
        log_.comms.push_back(row);
        any = true;
        about.bytes = row.bytes.count();
        about.time_s = row.time_s;
        about.unit_told = unit_told_;
        about.algbw_Bps = rate_cut ? 0 : row.algbw_Bps;
        about.busbw_Bps = rate_cut ? 0 : row.busbw_Bps;
        keep_fastest(about);
      }
      row.bytes = written;
      row.time_s = row.algbw_Bps = row.busbw_Bps = row.wrong = 0;
    };
    const bool lone_right = in_place_only_ || layout_.first_is_second(columns, words_, line);
    const std::size_t whole = whole_words(columns);
    for (std::size_t i = 0; i < whole; ++i) {
      const auto number = to_double(words_[i]);
      switch (columns[i]) {
        case NcclColumn::kSize:
          row.bytes = Bytes(to_int(words_[i]).value_or(0));
          break;
        case NcclColumn::kType:
          if (words_[i] != kLost) {
            current_.dtype = current_.dtype.empty() ? words_[i] : current_.dtype;
            about.type = words_[i];
          }
          break;
        case NcclColumn::kTime:
        case NcclColumn::kTimeIn:
          flush();
          ++time;
          row.in_place = time > 0 || columns[i] == NcclColumn::kTimeIn || lone_right;
          odd = odd || (!number && words_[i] != "N/A") || number.value_or(0) < 0;
          row.time_s = number.value_or(0) * time_unit_;
          break;
        case NcclColumn::kAlgbw:
        case NcclColumn::kBusbw:
          rate_cut = unended_ && i + 1 == words_.size();
          (columns[i] == NcclColumn::kAlgbw ? row.algbw_Bps : row.busbw_Bps) =
              rate_cut ? 0 : std::max(0.0, number.value_or(0) * rate_unit_);
          break;
        case NcclColumn::kWrong:
          row.wrong = number.value_or(0) >= 1 ? *number : 0;
          break;
        case NcclColumn::kCount:
          about.elements = to_int(words_[i]).value_or(0);
          break;
        case NcclColumn::kRedop:
          about.reduction = words_[i];
          break;
        case NcclColumn::kRoot:
          about.root = to_int(words_[i]).value_or(-1);
          about.root_told = !line.empty();  // of a row that was cut it may be lost
          break;
        case NcclColumn::kOther:
          break;
      }
    }
    flush();
    const bool cut = whole < std::min(columns.size(), words_.size());
    if (cut) {
      log_.warnings.add("a row of a table is cut off");
    }
    if (odd || (!any && !cut && row.bytes > Bytes())) {
      log_.warnings.add("rows of a table without a time were passed over");
    }
    if (any && table_ >= 0) {
      log_.settings.back() = current_;
    }
  }

  /// Of each table, the row that says most of its operation and ranks.
  void keep_fastest(const NcclTableRow& row) {
    NcclTableRow& kept = tables_[static_cast<std::size_t>(table_)].fastest;
    if (row.algbw_Bps > kept.algbw_Bps || kept.bytes == 0) {
      kept = row;
    }
  }

  void finish();

  std::string_view rest_;
  PhysicalLog& log_;
  TextTable names_;
  std::size_t number_ = 0;
  bool unended_ = false;  // the line, which is the last of the file
  std::vector<std::string_view> words_;
  std::vector<NcclColumn> columns_;
  NcclLayout layout_;
  bool in_place_only_ = false, in_place_next_ = false;  // the columns; those of the next header
  double time_unit_ = 1e-6, rate_unit_ = 1e9;
  bool unit_told_ = false;
  CommSetting current_;  // of the table that is open, or of the next one after its rows ended
  bool in_rows_ = false;
  GrowingSizes sizes_;  // of the open table, and of what it sweeps over at one time:
  std::string swept_;   // type, reduction and root
  std::int32_t table_ = -1;
  std::optional<std::vector<std::string>> pending_;  // a row that was cut, and its line
  std::size_t pending_line_ = 0;
  std::map<std::string, std::string> session_;  // environment of all runs that follow
  std::string program_;                         // of the line's command
  bool program_told_ = false;                   // by itself: current_.program
  LaunchLine launch_;
  std::int32_t process_gpus_ = 0;     // 0: not told
  std::vector<std::int64_t> groups_;  // of each rank that is told
  std::vector<NcclTable> tables_;
  NcclLinePrefix prefix_;
  std::string id_, note_;
};

void Reader::finish() {
  close_pending();
  if (log_.comms.empty()) {
    throw Error("there is no table of measurements")
        .expected("rows of nccl-tests: size, count, type, …, time, algbw, busbw");
  }
  const std::string base =
      !id_.empty() ? id_ : std::filesystem::path(log_.file).filename().string();
  for (std::size_t i = 0; i < log_.settings.size(); ++i) {
    CommSetting& setting = log_.settings[i];
    take_nccl_environment(note_, setting);
    if (setting.nccl_version.empty() && i > 0) {  // one library for all that do not tell
      setting.nccl_version = log_.settings[i - 1].nccl_version;
    }
    setting.id = log_.settings.size() == 1 ? base : fmt::format("{}#{}", base, i + 1);
    const auto first =
        std::ranges::lower_bound(log_.comms, static_cast<std::int32_t>(i), {}, &CommRow::setting);
    const auto end = std::ranges::find_if(first, log_.comms.end(), [&](const CommRow& row) {
      return std::cmp_not_equal(row.setting, i);
    });
    name_ranks(setting, tables_[i], {first, end}, names_, log_);
    check_times(setting, tables_[i].fastest, {first, end}, log_.warnings);
  }
}

bool sniff(std::string_view head, std::string_view) { return is_of_nccl_tests(head); }

void read(std::string_view text, PhysicalLog& log) {
  const std::vector<TaggedRun> runs = runs_by_tag(text);
  if (runs.empty()) {
    Reader(text, log).run();
    return;
  }
  TextTable names(log.names);
  std::size_t without = 0;
  for (const TaggedRun& run : runs) {
    try {
      PhysicalLog part;
      part.file = log.file;
      Reader(run.text, part).run();
      append_tables(std::move(part), run, log, names);
    } catch (const Error&) {
      if (++without == runs.size()) {
        throw;
      }
      log.warnings.add("one of the runs that tags tell apart has no table");
    }
  }
}

}  // namespace

extern const LogReader kNcclTestsLogReader;
const LogReader kNcclTestsLogReader{"nccl-tests", "output of nccl-tests and rccl-tests", sniff,
                                    read};

}  // namespace lockstep
