#include "app/terminal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kHead = "\x1b[36m", kAlarm = "\x1b[31m",
                           kPlain = "\x1b[0m";

/// Column heads: words without digits, two blanks or more between some of them.
bool is_head(std::string_view line) {
  return line.find("  ") != std::string_view::npos &&
         line.find_first_of("0123456789") == line.npos && split_blanks(line).size() > 2;
}

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
  std::string_view rest = line;
  while (!rest.empty()) {
    const std::size_t word = std::min(rest.find_first_not_of(' '), rest.size());
    const std::size_t end = std::min(rest.find(' ', word), rest.size());
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

}  // namespace

std::size_t terminal_width() {
  constexpr std::size_t kElsewhere = 80, kLeast = 60, kMost = 200;
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col == 0) {
    return kElsewhere;
  }
  return std::clamp<std::size_t>(size.ws_col, kLeast, kMost);
}

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0') &&
         terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

std::string for_terminal(const std::string& text) {
  if (::isatty(STDOUT_FILENO) == 0) {
    return text;
  }
  const std::string lines = fitted(text, terminal_width());
  return colour_wanted() ? coloured(lines) : lines;
}

std::string fitted(const std::string& text, std::size_t width) {
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    fold_line(rest.substr(0, end), width, out);
    if (end == std::string_view::npos) {
      break;
    }
    out += '\n';
    rest.remove_prefix(end + 1);
  }
  return out;
}

std::string coloured(const std::string& text) {
  std::string out;
  bool first = true;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const std::string_view style = first                            ? kBold
                                   : line.starts_with("warning:")   ? kAlarm
                                   : line.starts_with("worst rows") ? kAlarm
                                   : is_head(line)                  ? kHead
                                                                    : std::string_view();
    out += style;
    out += line;
    out += style.empty() ? std::string_view() : kPlain;
    if (end == std::string_view::npos) {
      break;
    }
    out += '\n';
    rest.remove_prefix(end + 1);
    first = false;
  }
  return out;
}

namespace {
int kept_error = STDERR_FILENO;
}

int unsilenced_error() { return kept_error; }

Silence::Silence(bool on) {
  if (!on) {
    return;
  }
  std::fflush(stderr);
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing >= 0) {
    kept_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    ::dup2(nothing, STDERR_FILENO);
    ::close(nothing);
    kept_error = kept_ >= 0 ? kept_ : STDERR_FILENO;
  }
}

Silence::~Silence() {
  if (kept_ >= 0) {
    std::fflush(stderr);
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
    kept_error = STDERR_FILENO;
  }
}

}  // namespace lockstep
