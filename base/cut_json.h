#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// What is whole of a JSON text that ends in the middle, as that of a program that was killed: up
/// to the last bracket or comma, with what is open there closed. Nothing where the text does not
/// end in the middle, which says nothing about whether it is right. O(text).
///
///     {"a": [1, {"b": 2, "c     ->     {"a": [1, {"b": 2}]}
std::optional<std::string> whole_of_cut_json(std::string_view text);

}  // namespace lockstep
