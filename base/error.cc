#include "base/error.h"

#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kLongestPath = 4096;

}  // namespace

Error::Error(std::string message, ExitCode code) : code_(code), message_(std::move(message)) {
  render();
}

Error&& Error::at(std::string_view file, std::size_t line, std::size_t column) && {
  file_ = file;
  line_ = line;
  column_ = column;
  render();
  return std::move(*this);
}

Error&& Error::field(std::string_view name) && {
  field_ = name;
  render();
  return std::move(*this);
}

Error&& Error::expected(std::string_view text) && {
  expected_ = text;
  render();
  return std::move(*this);
}

Error&& Error::hint(std::string_view text) && {
  hint_ = text;
  render();
  return std::move(*this);
}

void Error::add_context(std::string text) {
  context_.push_back(std::move(text));
  render();
}

void Error::locate(std::string_view file, std::size_t line) {
  if (!file_.empty()) {
    return;
  }
  file_ = file;
  line_ = line;
  render();
}

void Error::render() {
  std::string out;
  if (!file_.empty()) {
    out += printable(file_, kLongestPath);
    if (line_ != 0) {
      out += ':' + std::to_string(line_);
      if (column_ != 0) {
        out += ':' + std::to_string(column_);
      }
    }
    out += ": ";
  }
  if (!field_.empty()) {
    out += field_ + ": ";
  }
  out += message_;
  if (!expected_.empty()) {
    out += "\n  expected: " + expected_;
  }
  if (!hint_.empty()) {
    out += "\n  hint: " + hint_;
  }
  for (const std::string& text : context_) {
    out += "\n  " + text;
  }
  rendered_ = printable_lines(out);
}

void check_failed(const char* expression, const char* file, int line, const std::string& detail) {
  throw InternalError(std::string(file) + ':' + std::to_string(line) + ": broken invariant (" +
                      expression + "): " + detail);
}

}  // namespace lockstep
