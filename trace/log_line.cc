#include "trace/log_line.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kLongestTag = 96;
constexpr int kMostTags = 4;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Whether the text begins as the pattern, in which 0 stands for a digit.
bool begins_as(std::string_view text, std::string_view pattern) {
  if (text.size() < pattern.size()) {
    return false;
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '0' ? !is_digit(text[i]) : text[i] != pattern[i]) {
      return false;
    }
  }
  return true;
}

/// Length of "2025-02-01T10:11:12.131Z", with blanks or T, fractions and zones; 0: no time.
std::size_t length_of_time(std::string_view text) {
  if (!begins_as(text, "0000-00-00T00:00:00") && !begins_as(text, "0000-00-00 00:00:00")) {
    return 0;
  }
  std::size_t at = 19;
  while (at < text.size() && at < 40 &&
         (is_digit(text[at]) || text[at] == '.' || text[at] == ',' || text[at] == '+' ||
          text[at] == 'Z' || text[at] == ':')) {
    ++at;
  }
  return at;
}

/// Of "<stdout>:" at a text's beginning, or without the colon; 0: there is none.
std::size_t length_of_stream(std::string_view text) {
  for (const std::string_view stream : {"<stdout>", "<stderr>", "<stddiag>"}) {
    if (text.starts_with(stream)) {
      return stream.size() + (text.substr(stream.size()).starts_with(':') ? 1 : 0);
    }
  }
  return 0;
}

/// Length of "Mon May 12 10:11:12 2025", with Open MPI's "<stdout>:" behind it; 0: no such time.
std::size_t length_of_date(std::string_view text) {
  constexpr std::size_t kDay = 8, kLength = 24;
  constexpr std::string_view kDays = "Mon Tue Wed Thu Fri Sat Sun ";
  if (text.size() < kLength || kDays.find(text.substr(0, 4)) == std::string_view::npos ||
      !begins_as(text.substr(kDay + 1), "0 00:00:00 0000") ||
      !(is_digit(text[kDay]) || text[kDay] == ' ')) {
    return 0;
  }
  return kLength + length_of_stream(text.substr(kLength));
}

/// Length of "INFO:root:", as Python's logging begins lines; 0: there is none.
std::size_t length_of_level(std::string_view text) {
  for (const std::string_view level : {"DEBUG:", "INFO:", "WARNING:", "ERROR:", "CRITICAL:"}) {
    const std::size_t end = text.find_first_of(": \t", level.size());
    if (text.starts_with(level) && end < kLongestTag && end > level.size() && text[end] == ':') {
      return end + 1;
    }
  }
  return 0;
}

/// Length of "[…]", "[…]<stdout>:" or "(…)"; 0: there is none.
std::size_t length_of_brackets(std::string_view text) {
  if (!text.starts_with('[') && !text.starts_with('(')) {
    return 0;
  }
  const std::size_t end = text.substr(0, kLongestTag).find(text[0] == '[' ? ']' : ')');
  if (end == std::string_view::npos) {
    return 0;
  }
  const std::size_t stream = length_of_stream(text.substr(end + 1));
  const std::size_t length = end + 1 + stream;
  if (stream > 0 && text[length - 1] == ':') {
    return length;
  }
  if (length < text.size() && text[length] == ':') {
    return length + 1;
  }
  return length == text.size() || is_blank(text[length]) ? length : 0;
}

/// Length of "node7:" with a blank, a comment's sign or the line's end behind it; 0: no such word.
std::size_t length_of_word(std::string_view text) {
  const std::size_t colon = text.find_first_of(": \t#");
  if (colon == 0 || colon > kLongestTag || colon >= text.size() || text[colon] != ':') {
    return 0;
  }
  const bool ends = colon + 1 == text.size() || is_blank(text[colon + 1]) || text[colon + 1] == '#';
  return ends ? colon + 1 : 0;
}

}  // namespace

void drop_tags(std::string_view& line, std::string* tag) {
  for (int i = 0; i < kMostTags; ++i) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) {
      return;
    }
    const std::string_view text = line.substr(first);
    std::size_t length = length_of_time(text);
    length = length > 0 ? length : length_of_date(text);
    length = length > 0 ? length : length_of_level(text);
    if (length == 0) {
      length = length_of_brackets(text);
      length = length > 0 ? length : length_of_word(text);
      if (tag != nullptr &&
          !begins_as(text.substr(std::min<std::size_t>(1, length)), "0000-00-00")) {
        *tag += text.substr(0, length);
      }
    }
    if (length == 0) {
      return;
    }
    line = text.substr(length);
    if (!line.empty() && is_blank(line.front())) {
      line.remove_prefix(1);
    }
  }
}

}  // namespace lockstep
