#include "app/fitted.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Where a line goes on: under its last column that begins in the first two thirds.
std::size_t hanging_indent(std::string_view line, std::size_t width) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::size_t indent = 0;
  for (std::size_t at = line.find("  ", begin); at != std::string_view::npos;
       at = line.find("  ", at)) {
    at = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t column = characters(line.substr(0, at));
    indent = 3 * column <= 2 * width ? column : indent;
  }
  return indent > 0 ? indent : begin + 2;
}

void fold_line(std::string_view line, std::size_t width, std::string& out) {
  if (characters(line) <= width || line.starts_with("lockstep ")) {
    out += line;
    return;
  }
  const std::size_t indent = hanging_indent(line, width);
  std::size_t used = 0;  // characters of this line
  bool first = true;
  const bool cell = line.starts_with("| ");  // a row of Markdown
  std::string_view rest = line;
  while (!rest.empty()) {
    const std::size_t word = std::min(rest.find_first_not_of(' '), rest.size());
    const std::size_t end = std::min(rest.find(cell ? " |" : " ", word), rest.size());
    const std::string_view next = rest.substr(0, end);  // with the blanks before it
    if (!first && used > indent && used + characters(next) > width) {
      out += '\n';
      out.append(indent, ' ');
      out += rest.substr(word, end - word);
      used = indent + characters(rest.substr(word, end - word));
    } else {
      out += next;
      used += characters(next);
    }
    first = false;
    rest.remove_prefix(end);
  }
}

/// Whether a line is of a table: it has columns, two blanks or more behind its first word, or is
/// the rule below a table's head.
bool is_of_table(std::string_view line) {
  if (line.size() > 2 && line.find_first_not_of('-') == std::string_view::npos) {
    return true;
  }
  const std::size_t begin = line.find_first_not_of(' ');
  return begin != std::string_view::npos && line.find("  ", begin) != std::string_view::npos;
}

/// For each character of a table's lines whether all lines have a blank there, or have ended.
std::vector<bool> blank_columns(std::span<const std::string_view> lines) {
  std::vector<bool> blank;
  for (const std::string_view line : lines) {
    std::size_t column = 0;
    for (const char c : line) {
      if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) {
        continue;
      }
      if (column == blank.size()) {
        blank.push_back(true);
      }
      blank[column] = blank[column] && c == ' ';
      ++column;
    }
  }
  return blank;
}

/// The table's lines with `most` blanks between columns where there were more, and two before them.
std::vector<std::string> narrowed(std::span<const std::string_view> lines,
                                  const std::vector<bool>& blank, std::size_t most) {
  std::vector<bool> dropped(blank.size());
  std::size_t gap = 0;
  bool inside = false;
  for (std::size_t column = 0; column < blank.size(); ++column) {
    gap = blank[column] ? gap + 1 : 0;
    inside = inside || !blank[column];
    dropped[column] = gap > (inside ? most : 2);
  }
  std::vector<std::string> out;
  for (const std::string_view line : lines) {
    std::string& kept = out.emplace_back();
    std::size_t column = 0;
    bool drop = false;
    for (const char c : line) {
      if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
        drop = dropped[column++];
      }
      if (!drop) {
        kept += c;
      }
    }
  }
  return out;
}

bool all_fit(const auto& lines, std::size_t width) {
  return std::ranges::all_of(lines, [&](const auto& line) { return characters(line) <= width; });
}

/// Lines that have columns, one below the other.
void fit_table(std::span<const std::string_view> lines, std::size_t width, std::string& out) {
  std::vector<std::string> fitting;
  if (!all_fit(lines, width)) {
    const std::vector<bool> blank = blank_columns(lines);
    for (std::size_t most = 2; most > 0; --most) {
      fitting = narrowed(lines, blank, most);
      if (all_fit(fitting, width)) {
        break;
      }
      fitting.clear();
    }
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (fitting.empty()) {
      fold_line(lines[i], width, out);
    } else {
      out += fitting[i];
    }
    out += '\n';
  }
}

}  // namespace

std::string fitted(const std::string& text, std::size_t width) {
  std::string out;
  std::vector<std::string_view> table;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    if (is_of_table(line)) {
      table.push_back(line);
    } else {
      fit_table(table, width, out);
      table.clear();
      fold_line(line, width, out);
      out += '\n';
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  fit_table(table, width, out);
  if (!out.empty() && !text.ends_with('\n')) {
    out.pop_back();
  }
  return out;
}

}  // namespace lockstep
