#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  Number value{};
  const char* end = text.data() + text.size();
  auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || rest != end) {
    return std::nullopt;
  }
  return value;
}

/// Letters inserted, dropped, replaced, or swapped with their neighbour (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = last[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replace, row[j] + 1, last[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        row[j + 1] = std::min(row[j + 1], before_last[j - 1] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> split_blanks(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = text.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t end = text.find(separator);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return fields;
    }
    text.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> to_int(std::string_view text) {
  return whole_number<std::int64_t>(text);
}

std::optional<double> to_double(std::string_view text) {
  const std::optional<double> value = whole_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string join(std::span<const std::string_view> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string with_underscores(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '-', '_');
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return out;
}

namespace {

constexpr std::size_t kShortestBeginning = 3;

/// The one candidate that begins with `word`, if there is just one.
std::string_view only_beginning(const std::string& word,
                                std::span<const std::string_view> candidates) {
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    if (word.size() >= kShortestBeginning && to_lower(candidate).starts_with(word)) {
      if (!found.empty()) {
        return {};
      }
      found = candidate;
    }
  }
  return found;
}

}  // namespace

std::string_view closest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongestWord = 64;
  if (word.size() > kLongestWord) {
    return {};
  }
  const std::string wanted = to_lower(word);
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, to_lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best.empty() ? only_beginning(wanted, candidates) : best;
}

namespace {

/// Bytes of the character that the text begins with; 0 if it begins with none of UTF-8 (RFC 3629:
/// shortest forms, no surrogates, up to U+10FFFF).
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned lead = at(0);
  if (lead < 0x80) {
    return 1;
  }
  // The second byte's range depends on the first; all further ones are 80 … BF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  const std::size_t length = lead < 0xC2   ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (at(i) < (i == 1 ? low : 0x80U) || at(i) > (i == 1 ? high : 0xBFU)) {
      return 0;
    }
  }
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

void require_utf8(std::string_view text, const std::string& file) {
  std::size_t line = 1;
  for (std::string_view left = text; !left.empty();) {
    const std::size_t length = utf8_length(left);
    if (length == 0) {
      throw Error(fmt::format("byte {} is no UTF-8", printable(left.substr(0, 1))))
          .at(file, line)
          .expected("text in UTF-8");
    }
    line += left.starts_with('\n') ? 1U : 0U;
    left.remove_prefix(length);
  }
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (out.size() + std::max<std::size_t>(length, 1) > limit) {
      return out + "…";
    }
    const auto byte = static_cast<unsigned char>(text[0]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    out += printable(line, std::string_view::npos) + '\n';
  }
  out.pop_back();
  return out;
}

std::string without_colours(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const std::size_t escape = text.find("\x1b[");
    plain += text.substr(0, escape);
    if (escape == std::string_view::npos) {
      break;
    }
    text.remove_prefix(escape + 2);
    const std::size_t end = text.find_first_not_of("0123456789;:<=>? !\"#$%&'()*+,-./");
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return plain;
}

}  // namespace lockstep
