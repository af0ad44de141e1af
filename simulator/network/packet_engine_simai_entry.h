#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace lockstep {

/// One line of a SimAI.conf: a key and its values. Each function that reads a value throws an Error
/// with file, line and key where there is none such.
class SimaiConfEntry {
 public:
  SimaiConfEntry(std::vector<std::string_view> words, const std::string& file, std::size_t line)
      : words_(std::move(words)), file_(&file), line_(line) {}

  std::string_view key() const { return words_[0]; }
  const std::string& file() const { return *file_; }
  std::size_t line() const { return line_; }
  /// Of values.
  std::size_t size() const { return words_.size() - 1; }
  Error error(std::string message) const {
    return Error(std::move(message)).at(*file_, line_).field(key());
  }

  /// The only value.
  std::string_view text() const;
  void any_number() const;
  double number(double low, double high) const { return number_of(text(), low, high); }
  std::int64_t whole(double low, double high) const { return whole_of(text(), low, high); }
  bool flag() const { return whole(0, 1) != 0; }
  Bandwidth rate() const;

  /// One of several.
  void expect(std::size_t values) const;
  double number_at(std::size_t i, double low, double high) const {
    return number_of(at(i), low, high);
  }
  std::int64_t whole_at(std::size_t i, double low, double high) const {
    return whole_of(at(i), low, high);
  }

 private:
  std::string_view at(std::size_t i) const;
  double number_of(std::string_view text, double low, double high) const;
  std::int64_t whole_of(std::string_view text, double low, double high) const;

  std::vector<std::string_view> words_;
  const std::string* file_;
  std::size_t line_;
};

}  // namespace lockstep
