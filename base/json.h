#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {

/// Keys keep their order, so that what we write is stable.
using Json = nlohmann::ordered_json;

/// Parses a JSON text. Arrays under the key `packed` take about as much memory as their text, not
/// ten times that; only JsonView::each() can look into them. O(text).
/// ERRORS: Error with file, line and column; nesting deeper than 64 levels and a key that stands
/// twice in one object are errors too.
Json parse_json(std::string_view text, const std::string& file, std::string_view packed = {});

/// Calls f with each element of a packed array, in order.
template <class F>
void each_packed(const Json& array, F&& f) {
  const std::vector<std::uint8_t>& bytes = array.get_binary();
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    at += sizeof length;
    f(Json::from_cbor(bytes.data() + at, bytes.data() + at + length));
    at += length;
  }
}

/// The whole file as text, with a newline at the end. Bytes that are no UTF-8 are replaced.
std::string to_text(const Json& json);
/// The same on one line, without a newline; of a text: the quoted text.
std::string to_line(const Json& json);

/// A place in a JSON document that knows its path, so that a wrong value is reported as
/// "topology.json: links[3].rate: …". Reading checks type and range.
class JsonView {
 public:
  JsonView(const Json& value, std::string file) : value_(&value), file_(std::move(file)) {}

  bool has(std::string_view key) const;
  /// A member or an element. ERRORS: absent, or this is no object (array).
  JsonView operator[](std::string_view key) const;
  JsonView operator[](std::size_t index) const;
  std::size_t size() const;  ///< of an array or object. ERRORS: it is neither
  /// Calls f(view) with each element of an array, packed or not. ERRORS: it is none.
  template <class F>
  void each(F&& f) const {
    if (value_->is_binary()) {
      std::size_t index = 0;
      each_packed(*value_, [&](const Json& element) { f(element_view(element, index++)); });
      return;
    }
    if (!value_->is_array()) {
      throw error("expected an array");
    }
    for (std::size_t i = 0; i < value_->size(); ++i) {
      f(element_view((*value_)[i], i));
    }
  }

  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  double number() const;
  const std::string& string() const;
  bool boolean() const;

  /// ERRORS: this is no object, or it has a key that is not listed (with the nearest listed one).
  void allow_keys(std::span<const std::string_view> keys) const;
  /// Calls f(this); an Error that leaves it without a place gets this one. For parse_time and such.
  template <class F>
  auto parse(F&& f) const {
    try {
      return f(std::string_view(string()));
    } catch (class Error& error) {
      rethrow(error);
    }
  }
  /// An Error about this place.
  class Error error(std::string message) const;

  const Json& json() const { return *value_; }
  const std::string& file() const { return file_; }

 private:
  JsonView(const Json& value, std::string file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}
  [[noreturn]] void rethrow(class Error& error) const;
  JsonView element_view(const Json& element, std::size_t index) const;

  const Json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace lockstep
