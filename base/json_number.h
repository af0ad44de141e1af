#pragma once

#include <cstdint>

#include "base/json.h"

namespace lockstep {

/// A whole number of a document that a program of ours wrote (of a user's file:
/// JsonView::integer()). Json::get() takes numbers such as 1e300, too, which no integer holds.
/// ERRORS: Json::type_error.
inline std::int64_t whole_number(const Json& json) { return json.get_ref<const std::int64_t&>(); }

}  // namespace lockstep
