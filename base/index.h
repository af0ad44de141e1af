#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

/// A number of the model (a rank, node, class or transfer, 32 bits to keep tables flat) as an
/// index. PRECONDITION: it is not negative.
constexpr std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

}  // namespace lockstep
