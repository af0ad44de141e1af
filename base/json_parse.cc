#include <cmath>
#include <deque>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr int kMaxDepth = 64;

struct Position {
  std::size_t line = 1, column = 1;
};

Position position_of(std::string_view text, std::size_t byte) {
  Position at;
  for (const char c : text.substr(0, byte)) {
    if (c == '\n') {
      ++at.line;
      at.column = 1;
    } else {
      ++at.column;
    }
  }
  return at;
}

/// Where the n-th key of a text begins that is JSON as far as that: a string before a colon.
std::size_t begin_of_key(std::string_view text, std::size_t n) {
  for (std::size_t at = text.find('"'); at != text.npos; at = text.find('"', at)) {
    const std::size_t begin = at;
    for (++at; at < text.size() && text[at] != '"'; ++at) {
      at += text[at] == '\\' ? 1U : 0U;
    }
    at = text.find_first_not_of(" \t\r\n", at + 1);
    if (at != text.npos && text[at] == ':' && --n == 0) {
      return begin;
    }
  }
  return text.size();
}

/// Builds the document from the parser's events: what nlohmann's own does, without looking through
/// an array anew at each element's end, as it does where a callback watches it.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  JsonBuilder(std::string_view text, const std::string& file, std::string_view packed)
      : text_(text), file_(file), packed_(packed) {}

  Json take() { return std::move(root_); }

  bool null() override { return value(nullptr); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(Json::number_integer_t v) override { return value(v); }
  bool number_unsigned(Json::number_unsigned_t v) override { return value(v); }
  bool number_float(Json::number_float_t v, const std::string& /*text*/) override {
    return value(v);
  }
  bool string(std::string& v) override { return value(std::move(v)); }
  bool binary(Json::binary_t& /*v*/) override { return false; }

  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    ++keys_;
    Level& level = levels_.back();
    const bool fresh = level.many ? level.keys.insert(name).second
                                  : level.container->find(name) == level.container->end();
    if (!fresh) {
      const Position at = position_of(text_, begin_of_key(text_, keys_));
      throw Error(fmt::format("the key \"{}\" stands twice in one object", printable(name)))
          .at(file_, at.line, at.column);
    }
    if (!level.many && level.container->size() >= kFewKeys) {
      level.many = true;
      for (const auto& [known, unused] : level.container->items()) {
        level.keys.insert(known);
      }
      level.keys.insert(name);
    }
    level.key = name;
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const Json::exception& problem) override {
    const auto* place = dynamic_cast<const Json::parse_error*>(&problem);
    if (place == nullptr) {
      throw Error(fmt::format("this is not valid JSON: {}", printable(problem.what(), 200)))
          .at(file_);
    }
    const Position at = position_of(text_, place->byte == 0 ? 0 : place->byte - 1);
    const std::string what = problem.what();
    const std::size_t colon = what.rfind("- ");
    throw Error("this is not valid JSON: " +
                printable(colon == std::string::npos ? what : what.substr(colon + 2), 200))
        .at(file_, at.line, at.column);
  }

 private:
  static constexpr std::size_t kFewKeys = 16;  // up to here they are compared one by one

  struct Level {
    Json* container = nullptr;
    std::string key;  ///< of an object: the one whose value comes next
    std::set<std::string> keys;
    bool many = false;  ///< `keys` is in use
    bool packed = false;
    std::vector<std::uint8_t> bytes;  ///< packed: each element's length and CBOR
    Json element;                     ///< packed: the one that is read
  };

  /// Puts a value where the next one belongs and says where that is.
  Json& place(Json&& v) {
    if (levels_.empty()) {
      root_ = std::move(v);
      return root_;
    }
    Level& level = levels_.back();
    if (level.packed) {
      level.element = std::move(v);
      return level.element;
    }
    if (level.container->is_array()) {
      level.container->push_back(std::move(v));
      return level.container->back();
    }
    // Not operator[]: it would look for the key once more.
    auto& members = level.container->get_ref<Json::object_t&>();
    members.emplace_back(std::move(level.key), std::move(v));
    return members.back().second;
  }

  template <class T>
  bool value(T&& v) {
    place(Json(std::forward<T>(v)));
    finish_element();
    return true;
  }

  bool open(Json&& empty) {
    if (levels_.size() >= kMaxDepth) {
      throw Error(fmt::format("JSON nested deeper than {} levels", kMaxDepth)).at(file_);
    }
    const bool packed = empty.is_array() && !packed_.empty() && !levels_.empty() &&
                        !levels_.back().packed && levels_.back().container->is_object() &&
                        levels_.back().key == packed_;
    Json& where = place(std::move(empty));
    Level& level = levels_.emplace_back();
    level.container = &where;
    level.packed = packed;
    return true;
  }

  bool close() {
    Level& level = levels_.back();
    if (level.packed) {
      level.bytes.shrink_to_fit();
      *level.container = Json::binary(std::move(level.bytes));
    }
    levels_.pop_back();
    finish_element();
    return true;
  }

  /// A value of a packed array has come to its end.
  void finish_element() {
    if (levels_.empty() || !levels_.back().packed) {
      return;
    }
    Level& level = levels_.back();
    const std::size_t at = level.bytes.size();
    level.bytes.resize(at + sizeof(std::uint32_t));
    Json::to_cbor(level.element, level.bytes);
    const std::size_t size = level.bytes.size() - at - sizeof(std::uint32_t);
    if (size > UINT32_MAX) {
      throw Error("an element of an array is larger than 4 GiB").at(file_);
    }
    const auto length = static_cast<std::uint32_t>(size);
    std::memcpy(level.bytes.data() + at, &length, sizeof length);
    level.element = nullptr;
  }

  std::string_view text_;
  const std::string& file_;
  std::string_view packed_;
  Json root_;
  std::size_t keys_ = 0;      ///< that were read so far
  std::deque<Level> levels_;  ///< a deque: `element`s must stay where they are
};

}  // namespace

Json parse_json(std::string_view text, const std::string& file, std::string_view packed) {
  JsonBuilder builder(text, file, packed);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace lockstep
