#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// The rank that a file's name tells: "rank_3", "rank3", "rank-3", or the last number before the
/// ending of "chakra.3.et"; -1: none.
std::int32_t rank_in_name(const std::string& path);

}  // namespace lockstep
