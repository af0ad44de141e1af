#include "trace/nccl_line.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/csv_fields.h"
#include "base/text.h"
#include "trace/log_line.h"
#include "trace/nccl_table_op.h"

namespace lockstep {
namespace {

std::optional<NcclColumn> column_named(std::string_view word) {
  constexpr std::pair<std::string_view, NcclColumn> kNames[] = {
      {"size", NcclColumn::kSize},         {"count", NcclColumn::kCount},
      {"type", NcclColumn::kType},         {"redop", NcclColumn::kRedop},
      {"root", NcclColumn::kRoot},         {"time", NcclColumn::kTime},
      {"algbw", NcclColumn::kAlgbw},       {"busbw", NcclColumn::kBusbw},
      {"error", NcclColumn::kWrong},       {"#wrong", NcclColumn::kWrong},
      {"cputime", NcclColumn::kTime},      {"time_oop_us", NcclColumn::kTime},
      {"time_ip_us", NcclColumn::kTimeIn}, {"bytes", NcclColumn::kSize},
      {"N", NcclColumn::kCount},           {"op", NcclColumn::kRedop},
      {"res", NcclColumn::kOther}};  // the last four: release 1
  for (const auto& [name, column] : kNames) {
    if (word == name) {
      return column;
    }
  }
  return std::nullopt;
}

bool is_unit(std::string_view word) { return word.starts_with('(') && word.ends_with(')'); }

std::string_view third_word(std::string_view line) {
  const auto words = split_blanks(line.substr(0, 200));
  return words.size() > 2 ? words[2] : std::string_view();
}

}  // namespace

const std::vector<NcclColumn>& usual_nccl_columns(const std::vector<std::string_view>& row) {
  const auto with = [](std::initializer_list<NcclColumn> more) {
    std::vector<NcclColumn> columns = {NcclColumn::kSize, NcclColumn::kCount, NcclColumn::kType};
    columns.insert(columns.end(), more);
    for (int result = 0; result < 2; ++result) {
      columns.insert(columns.end(), {NcclColumn::kTime, NcclColumn::kAlgbw, NcclColumn::kBusbw,
                                     NcclColumn::kWrong});
    }
    return columns;
  };
  static const std::vector<NcclColumn> both = with({NcclColumn::kRedop, NcclColumn::kRoot}),
                                       redop = with({NcclColumn::kRedop}),
                                       root = with({NcclColumn::kRoot}), neither = with({});
  return row.size() == neither.size() ? neither
         : row.size() != root.size()  ? both
         : to_int(row[3])             ? root
                                      : redop;
}

std::vector<NcclColumn> nccl_header_columns(const std::vector<std::string_view>& words) {
  std::vector<NcclColumn> columns;
  bool size = false, time = false, type = false, rate = false, other = false;
  for (std::string_view word : words) {
    if (word == "#" || is_unit(word)) {
      continue;
    }
    word = word.substr(0, word.find('('));  // "time(us)"
    const auto column = column_named(word);
    if (!column && columns.empty()) {
      return {};
    }
    if (word == "timestamp") {
      break;
    }
    if (!column) {  // "i_min", "i_p99": of single iterations; "#bitdiff", …
      other = other || !word.starts_with("i_");
      columns.push_back(NcclColumn::kOther);
      continue;
    }
    size = size || *column == NcclColumn::kSize;
    type = type || *column == NcclColumn::kType;
    time = time || *column == NcclColumn::kTime;
    rate = rate || *column == NcclColumn::kAlgbw;
    columns.push_back(*column);
  }
  return size && time && type && (rate || !other) ? columns : std::vector<NcclColumn>{};
}

bool nccl_row_fits(const std::vector<NcclColumn>& columns,
                   const std::vector<std::string_view>& words) {
  for (std::size_t i = 0; i < std::min(words.size(), columns.size()); ++i) {
    const NcclColumn column = columns[i];
    if ((column == NcclColumn::kSize || column == NcclColumn::kCount) && !to_int(words[i])) {
      return false;
    }
    if (column == NcclColumn::kType && nccl_element_bytes(words[i]) == 0) {
      return false;
    }
  }
  return true;
}

std::size_t nccl_piece_end(const std::vector<NcclColumn>& columns, std::size_t words) {
  for (std::size_t i = 1; i <= columns.size(); ++i) {
    const bool ends =
        i == columns.size() || columns[i] == NcclColumn::kTime || columns[i] == NcclColumn::kTimeIn;
    if (ends && (words == i || words + 1 == i)) {
      return i;
    }
  }
  return 0;
}

bool NcclLayout::first_is_second(const std::vector<NcclColumn>& columns,
                                 const std::vector<std::string_view>& words,
                                 std::string_view line) const {
  const auto first =
      static_cast<std::size_t>(std::ranges::find(columns, NcclColumn::kTime) - columns.begin());
  if (time_ends.size() != 2 || line.empty() || first >= words.size()) {
    return false;
  }
  const std::ptrdiff_t end = words[first].data() + words[first].size() - line.data();
  return 2 * end > time_ends[0] + time_ends[1];
}

NcclLayout nccl_layout(const std::vector<std::string_view>& words, std::string_view line) {
  NcclLayout layout;
  for (const std::string_view word : words) {
    if (word.substr(0, word.find('(')).ends_with("time")) {
      layout.time_ends.push_back(word.data() + word.size() - line.data());
    }
    layout.timestamps = layout.timestamps || word == "timestamp";
  }
  return layout;
}

void NcclLinePrefix::drop(std::string_view& line) {
  const std::size_t hash = line.find('#');
  if (hash != std::string_view::npos && hash > 0 && hash < 100 &&
      (line[hash - 1] == ' ' || line[hash - 1] == '\t')) {
    const std::string_view rest = line.substr(hash);
    const auto words = split_blanks(line.substr(0, hash));
    const bool own = rest.find("nThread") != std::string_view::npos ||
                     rest.find("Using devices") != std::string_view::npos ||
                     rest.find("ccl-tests version ") != std::string_view::npos ||
                     rest.find("Collective test starting") != std::string_view::npos ||
                     !nccl_header_columns(split_blanks(rest.substr(0, 400))).empty();
    if (own && words.size() <= 10) {
      words_ = words.size();
    }
    if (own || (words.size() == words_ && words_ > 0)) {
      line = rest;
      return;
    }
  }
  const std::size_t first = line.find_first_not_of(" \t");
  const std::size_t end = line.find_first_of(" \t", first);
  if (words_ == 0 || (first != std::string_view::npos && to_int(line.substr(first, end - first)) &&
                      nccl_element_bytes(third_word(line)) > 0)) {
    return;  // a row without the tags
  }
  std::string_view rest = line;
  for (std::size_t i = 0; i < words_; ++i) {
    const std::size_t word = rest.find_first_not_of(" \t");
    if (word == std::string_view::npos) {
      return;
    }
    rest.remove_prefix(std::min(rest.find_first_of(" \t", word), rest.size()));
  }
  line = rest.empty() ? rest : rest.substr(1);
}

std::size_t skip_glued_number(std::string_view line, std::size_t info,
                              const std::vector<std::string>& hosts) {
  if (info == std::string_view::npos || info == 0 || !is_digit(line[info])) {
    return info;
  }
  const std::string_view word = line.substr(info, line.find(':', info) - info);
  if (std::ranges::find(hosts, word) != hosts.end()) {
    return info;
  }
  for (const std::string& host : hosts) {
    if (!host.empty() && word.ends_with(host) &&
        to_int(word.substr(0, word.size() - host.size()))) {
      return info + word.size() - host.size();
    }
  }
  return info;
}

void drop_timestamp(std::vector<std::string_view>& words) {
  const std::size_t count = words.size();
  if (count > 2 && words[count - 1].size() == 8 && words[count - 1].find(':') == 2 &&
      words[count - 2].size() == 10 && words[count - 2].find('-') == 4) {
    words.resize(count - 2);
  }
}

bool is_of_nccl_tests(std::string_view head) {
  constexpr std::size_t kMostLines = 4000;
  if (head.find("Collective test starting") != std::string_view::npos ||
      head.find("# nThread ") != std::string_view::npos ||
      head.find("# Using devices") != std::string_view::npos) {
    return true;
  }
  std::string_view line;
  for (std::size_t lines = 0; lines < kMostLines && next_line(head, line); ++lines) {
    drop_tags(line);
    const auto words = split_blanks(line.substr(0, 400));
    if (!nccl_header_columns(words).empty()) {
      return true;
    }
    if (words.size() >= 8 && to_int(words[0]) && to_int(words[1]) &&
        nccl_element_bytes(words[2]) > 0) {
      return true;
    }
  }
  return false;
}

}  // namespace lockstep
