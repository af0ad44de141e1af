// A published table of bandwidths in Markdown: a column of message sizes ("1K", "64M"; or numbers
// alone with the unit in the column's head) and one of bus bandwidths, else of algorithm
// bandwidths, in the unit of its head. Sizes in powers of ten that stand for powers of two ("65K",
// "132K", "524K") are taken for the nearest power of two, as such reports mean them. Times follow
// from the bandwidth.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/nccl_info.h"
#include "trace/nccl_table_op.h"
#include "trace/rate_unit.h"

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

/// Bytes of a size's unit in small letters: "k", "mib", "bytes)"; 0: none.
double size_scale(std::string_view unit) {
  return unit.starts_with('b')   ? 1
         : unit.starts_with('k') ? 1024.0
         : unit.starts_with('m') ? 1024.0 * 1024
         : unit.starts_with('g') ? 1024.0 * 1024 * 1024
                                 : 0;
}

/// What a table's head says of its columns.
struct Head {
  std::size_t size = 0, bandwidth = 0;  ///< which columns
  bool bus = true;                      ///< of bus bandwidths, else of algorithm bandwidths
  bool says_which = false, several = false;
  double size_unit = 1;  ///< of numbers alone
  double rate_Bps = 0;
};

/// A head names neither where it says bandwidth alone: such reports mean the bus's.
std::optional<Head> head_of(const std::vector<std::string_view>& cells) {
  Head head;
  bool size = false;
  int best = 0;  // 1: algorithm bandwidth, 2: bandwidth, 3: bus bandwidth
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string lower = to_lower(cells[i]);
    const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
    const bool small = !rate_unit(cells[i]) && has("gb/s");
    if (const auto rate = small ? std::optional(1e9) : rate_unit(cells[i])) {
      const int kind = has("bus") ? 3 : has("alg") ? 1 : 2;
      head.several = kind == best ? true : kind > best ? false : head.several;
      if (kind > best) {
        head.bandwidth = i;
        head.rate_Bps = *rate;
        head.bus = kind != 1;
        head.says_which = kind != 2;
        best = kind;
      }
    } else if (!size && has("size")) {
      size = true;
      head.size = i;
      const std::size_t unit = lower.find('(');
      head.size_unit = unit == std::string::npos ? 1 : size_scale(lower.substr(unit + 1));
    }
  }
  return size && best > 0 && head.size_unit > 0 ? std::optional(head) : std::nullopt;
}

bool sniff(std::string_view head, std::string_view) {
  std::string_view line;
  while (next_line(head, line)) {
    if (head_of(cells_of(line))) {
      return true;
    }
  }
  return false;
}

/// Whether each comma stands before three digits, as those do that set off thousands.
bool sets_off_thousands(std::string_view number) {
  const std::vector<std::string_view> parts = split(number, ',');
  return std::ranges::all_of(parts.begin() + 1, parts.end(), [](std::string_view part) {
    return part.substr(0, part.find('.')).size() == 3;
  });
}

/// "132K" -> 131072; a number alone in the unit of the column's head; 0: no size.
std::int64_t size_of(std::string_view text, double unit) {
  std::string digits(text.substr(0, text.find_first_not_of("0123456789.,")));
  const std::string behind = to_lower(trim(text.substr(digits.size())));
  if (!sets_off_thousands(digits)) {
    return 0;
  }
  std::erase(digits, ',');
  const double scale = behind.empty() ? unit : size_scale(behind);
  const double number = to_double(digits).value_or(0), bytes = number * scale;
  if (!(bytes >= 1) || bytes >= 1e15) {
    return 0;
  }
  // In thousands: 65536 B are "65K" or "66K", 131072 B "132K" in some reports.
  const double nearest = std::exp2(std::round(std::log2(bytes)));
  const double thousands = nearest / std::pow(1000, std::round(std::log2(scale) / 10));
  const bool meant = std::floor(thousands) == number || std::round(thousands) == number ||
                     (number >= 100 && std::abs(thousands - number) < 1);
  return static_cast<std::int64_t>(meant ? nearest : bytes);
}

/// A table, and what stands before it.
struct Table {
  Head head;
  CommType title = CommType::kNone;  ///< the operation that the last line names which names one
  std::size_t first_row = 0;
  CommSetting setting;
};

/// Tells the rows of a table its operation, ranks and times, which stay 0 where the operation of
/// bus bandwidths is unknown.
void finish(Table& table, std::span<CommRow> rows, TextTable& names, PhysicalLog& log) {
  CommSetting& setting = table.setting;
  if (rows.empty()) {
    return;
  }
  const CommType hint = take_hints(setting.id, setting);
  const CommType op = hint != CommType::kNone ? hint : table.title;
  if (setting.ranks == 0) {  // such reports are of one server of eight
    setting.ranks = 8;
    setting.servers = 1;
    log.warnings.add("the table does not tell how many GPUs; 8 in one server are taken");
  }
  if (op == CommType::kNone && table.head.bus) {
    log.warnings.add("a table that does not say of which operation its bus bandwidths are");
    return;
  }
  const double told = nccl_bus_factor(op, setting.ranks);
  const double factor = told > 0 ? told : 1;
  for (CommRow& row : rows) {
    row.op = op;
    row.name = names.index(name_of(op));
    row.ranks = setting.ranks;
    (table.head.bus ? row.algbw_Bps : row.busbw_Bps) =
        table.head.bus ? row.busbw_Bps / factor : row.algbw_Bps * factor;
    row.time_s = static_cast<double>(row.bytes.count()) / row.algbw_Bps;
  }
}

void read(std::string_view text, PhysicalLog& log) {
  std::string id = log.file.substr(log.file.rfind('/') + 1);
  std::string_view line;
  std::int64_t number = 0;
  std::vector<Table> tables;
  bool in_table = false;
  CommType title = CommType::kNone;
  while (next_line(text, line)) {
    ++number;
    if (line.starts_with("## id: ")) {
      id = trim(line.substr(7));
    }
    const auto cells = cells_of(line);
    if (const auto head = head_of(cells)) {
      in_table = true;
      tables.push_back({*head, title, log.comms.size(), {}});
      take_hints(cells[head->bandwidth], tables.back().setting);
      if (!head->says_which) {
        log.warnings.add(
            "a table does not say which bandwidths it has: they are taken for bus bandwidths");
      }
      if (head->several) {
        log.warnings.add("a table has several columns of bandwidths; the first of them is taken");
      }
      continue;
    }
    if (cells.empty()) {
      in_table = false;
      const CommType named = comm_type_in(line);
      title = named != CommType::kNone ? named : title;
    }
    const Head head = in_table ? tables.back().head : Head();
    if (!in_table || cells.size() <= std::max(head.size, head.bandwidth)) {
      continue;
    }
    const std::int64_t bytes = size_of(cells[head.size], head.size_unit);
    const auto bandwidth = to_double(cells[head.bandwidth]);
    constexpr double kLeast = 1, kMost = 1e18;  // B/s
    if (bytes == 0 || !bandwidth || !(*bandwidth * head.rate_Bps >= kLeast) ||
        *bandwidth * head.rate_Bps > kMost) {
      if (!cells[head.size].empty() && is_digit(cells[head.size].front())) {
        log.warnings.add("rows of a table without a size or a bandwidth");
      }
      continue;  // else the rule under the head
    }
    CommRow row;
    row.setting = static_cast<std::int32_t>(tables.size()) - 1;
    row.bytes = Bytes(bytes);
    (head.bus ? row.busbw_Bps : row.algbw_Bps) = *bandwidth * head.rate_Bps;
    row.in_place = true;
    row.line = number;
    log.comms.push_back(row);
  }
  if (log.comms.empty()) {
    throw Error("the table has no rows of a size and a bandwidth");
  }
  TextTable names(log.names);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    CommSetting& setting = tables[i].setting;
    setting.id = tables.size() == 1 ? id : fmt::format("{}#{}", id, i + 1);
    const std::size_t end = i + 1 < tables.size() ? tables[i + 1].first_row : log.comms.size();
    finish(tables[i], std::span(log.comms).subspan(tables[i].first_row, end - tables[i].first_row),
           names, log);
    log.settings.push_back(std::move(setting));
  }
  std::erase_if(log.comms, [](const CommRow& row) { return row.time_s == 0; });
  if (log.comms.empty()) {
    throw Error("no table says of which operation its bus bandwidths are")
        .at(log.file)
        .expected("the operation in a line before it, or in the file's name")
        .hint("such as all_reduce-n1g8.md");
  }
}

}  // namespace

extern const LogReader kBandwidthTableLogReader;
const LogReader kBandwidthTableLogReader{
    "bandwidth-table", "published tables of bus or algorithm bandwidth (Markdown)", sniff, read};

}  // namespace lockstep
