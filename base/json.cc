#include "base/json.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
  return element_view((*value_)[index], index);
}

JsonView JsonView::element_view(const Json& element, std::size_t index) const {
  return {element, file_, fmt::format("{}[{}]", path_, index)};
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
    throw error(fmt::format(
        "expected a whole number from {} to {}, not {}", low, high,
        value_->is_primitive() ? printable(to_line(*value_), 40) : value_->type_name()));
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
