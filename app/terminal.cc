#include "app/terminal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/fitted.h"
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

}  // namespace

bool on_terminal() { return ::isatty(STDOUT_FILENO) != 0; }

std::size_t terminal_width() {
  constexpr std::size_t kElsewhere = 80, kLeast = 60, kMost = 200;
  winsize size{};
  if (!on_terminal() || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kElsewhere;
  }
  return std::clamp<std::size_t>(size.ws_col, kLeast, kMost);
}

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return on_terminal() && (no_colour == nullptr || *no_colour == '\0') && terminal != nullptr &&
         std::strcmp(terminal, "dumb") != 0;
}

std::string terminal_form() {
  return on_terminal() ? fmt::format("{} {}", terminal_width(), colour_wanted()) : std::string();
}

std::string for_terminal(const std::string& text) {
  if (!on_terminal()) {
    return text;
  }
  const std::string lines = fitted(text, terminal_width());
  return colour_wanted() ? coloured(lines) : lines;
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
