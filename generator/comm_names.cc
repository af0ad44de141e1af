#include "generator/comm_names.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr auto kOperations = std::to_array<std::string_view>(
    {"all_reduce", "isend", "irecv", "broadcast", "all_gather", "reduce_scatter", "barrier",
     "reduce", "reduce_scatter_tensor", "all_gather_into_tensor", "computation", "epoch_end",
     "all_to_all"});

}  // namespace

std::span<const std::string_view> aicb_operations() { return kOperations; }

bool is_aicb_operation(std::string_view name) {
  return std::find(kOperations.begin(), kOperations.end(), name) != kOperations.end();
}

}  // namespace lockstep
