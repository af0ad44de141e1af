#include "base/json.h"

#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
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

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (depth >= kMaxDepth) {
          throw Error(fmt::format("JSON nested deeper than {} levels", kMaxDepth)).at(file);
        }
        keys.emplace_back();
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!keys.back().insert(value.get_ref<const std::string&>()).second) {
          throw Error(fmt::format("the key \"{}\" stands twice in one object",
                                  printable(value.get_ref<const std::string&>())))
              .at(file);
        }
        break;
      case Json::parse_event_t::value:
        break;
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& problem) {
    const Position at = position_of(text, problem.byte == 0 ? 0 : problem.byte - 1);
    std::string what = problem.what();
    const std::size_t colon = what.rfind("- ");
    throw Error("this is not valid JSON: " +
                printable(colon == std::string::npos ? what : what.substr(colon + 2), 200))
        .at(file, at.line, at.column);
  } catch (const Json::exception& problem) {
    throw Error(fmt::format("this is not valid JSON: {}", printable(problem.what(), 200))).at(file);
  }
}

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool JsonView::has(std::string_view key) const {
  return value_->is_object() && value_->find(key) != value_->end();
}

JsonView JsonView::operator[](std::string_view key) const {
  if (!value_->is_object()) {
    throw error("expected an object");
  }
  const auto found = value_->find(key);
  if (found == value_->end()) {
    throw error(fmt::format("the field \"{}\" is missing", key));
  }
  return {*found, file_, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
}

JsonView JsonView::operator[](std::size_t index) const {
  if (index >= size() || !value_->is_array()) {
    throw error(fmt::format("expected an array with more than {} elements", index));
  }
  return {(*value_)[index], file_, fmt::format("{}[{}]", path_, index)};
}

std::size_t JsonView::size() const {
  if (!value_->is_structured()) {
    throw error("expected an array or an object");
  }
  return value_->size();
}

std::int64_t JsonView::integer(std::int64_t low, std::int64_t high) const {
  const bool huge = value_->is_number_unsigned() &&
                    value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (!value_->is_number_integer() || huge || value_->get<std::int64_t>() < low ||
      value_->get<std::int64_t>() > high) {
    throw error(fmt::format("expected a whole number from {} to {}", low, high));
  }
  return value_->get<std::int64_t>();
}

double JsonView::number() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) {
    throw error("expected a number");
  }
  return value_->get<double>();
}

const std::string& JsonView::string() const {
  if (!value_->is_string()) {
    throw error("expected a text");
  }
  return value_->get_ref<const std::string&>();
}

bool JsonView::boolean() const {
  if (!value_->is_boolean()) {
    throw error("expected true or false");
  }
  return value_->get<bool>();
}

void JsonView::allow_keys(std::span<const std::string_view> keys) const {
  if (!value_->is_object()) {
    throw error("expected an object");
  }
  for (const auto& [key, unused] : value_->items()) {
    bool known = false;
    for (const std::string_view name : keys) {
      known = known || name == key;
    }
    if (!known) {
      const std::string_view near = closest(key, keys);
      Error problem = error(fmt::format("unknown field \"{}\"", printable(key)));
      throw std::move(problem)
          .expected(join(keys, ", "))
          .hint(near.empty() ? "" : fmt::format("did you mean \"{}\"?", near));
    }
  }
}

Error JsonView::error(std::string message) const {
  return Error(std::move(message)).at(file_).field(path_);
}

void JsonView::rethrow(Error& error) const {
  error.locate(file_);
  if (error.file() == file_) {
    throw std::move(error).field(path_);
  }
  throw error;
}

}  // namespace lockstep
