#pragma once

#include <span>
#include <string_view>

#include "workloads/comm.h"

namespace lockstep {

/// AICB's word for an operation of ours: "all_reduce", "isend" (when it sends), "computation".
std::string_view aicb_operation(CommType comm, bool sends);

/// The operations of AICB's general-purpose CSV.
std::span<const std::string_view> aicb_operations();
bool is_aicb_operation(std::string_view name);

}  // namespace lockstep
