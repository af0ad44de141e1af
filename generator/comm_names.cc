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

std::string_view aicb_operation(CommType comm, bool sends) {
  switch (comm) {
    case CommType::kAllReduce:
      return "all_reduce";
    case CommType::kAllGather:
      return "all_gather";
    case CommType::kReduceScatter:
      return "reduce_scatter";
    case CommType::kAllToAll:
      return "all_to_all";
    case CommType::kBroadcast:
      return "broadcast";
    case CommType::kReduce:
      return "reduce";
    case CommType::kBarrier:
      return "barrier";
    case CommType::kSendRecv:
      return sends ? "isend" : "irecv";
    case CommType::kNone:
      break;
  }
  return "computation";
}

std::span<const std::string_view> aicb_operations() { return kOperations; }

bool is_aicb_operation(std::string_view name) {
  return std::find(kOperations.begin(), kOperations.end(), name) != kOperations.end();
}

}  // namespace lockstep
