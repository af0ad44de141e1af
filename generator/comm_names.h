#pragma once

#include <span>
#include <string_view>

namespace lockstep {

/// The operations of AICB's general-purpose CSV.
std::span<const std::string_view> aicb_operations();
bool is_aicb_operation(std::string_view name);

}  // namespace lockstep
