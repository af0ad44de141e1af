#include "workloads/simai_names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace lockstep {
namespace {

struct Spelling {
  CommType comm;
  std::string_view plain, ep, dp_ep;
};

constexpr std::array<Spelling, 5> kSpellings{{
    {CommType::kAllReduce, "ALLREDUCE", "ALLREDUCE_EP", "ALLREDUCE_DP_EP"},
    {CommType::kAllGather, "ALLGATHER", "ALLGATHER_EP", "ALLGATHER_DP_EP"},
    {CommType::kReduceScatter, "REDUCESCATTER", "REDUCESCATTER_EP", "REDUCESCATTER_DP_EP"},
    {CommType::kAllToAll, "ALLTOALL", "ALLTOALL_EP", "ALLTOALL_DP_EP"},
    {CommType::kBroadcast, "BROADCAST", "BROADCAST_EP", "BROADCAST_DP_EP"},
}};

constexpr std::array<std::string_view, 11> kPolicies{
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
    "HYBRID_TRANSFORMER",
    kMicroPolicy,
    "DATA",
    "MODEL",
    "HYBRID_DATA_MODEL",
    "HYBRID_MODEL_DATA",
    "HYBRID_DLRM",
    "HYBRID_DLRM_ENHANCED",
    kCustomizedPolicy,
    "DISTRIBUTED_INFERENCE",
};

}  // namespace

std::optional<SimaiComm> parse_simai_comm(std::string_view word, GroupKind plain) {
  if (word == "NONE" || word == "None") {
    return SimaiComm{CommType::kNone, plain};
  }
  for (const Spelling& spelling : kSpellings) {
    if (word == spelling.plain) {
      return SimaiComm{spelling.comm, plain};
    }
    if (word == spelling.ep) {
      return SimaiComm{spelling.comm, GroupKind::kEp};
    }
    if (word == spelling.dp_ep) {
      return SimaiComm{spelling.comm, GroupKind::kDpEp};
    }
  }
  return std::nullopt;
}

std::string_view simai_comm_text(SimaiComm comm, GroupKind plain) {
  if (comm.comm == CommType::kNone) {
    return comm.group == plain ? "NONE" : "";
  }
  for (const Spelling& spelling : kSpellings) {
    if (comm.comm == spelling.comm) {
      return comm.group == plain              ? spelling.plain
             : comm.group == GroupKind::kEp   ? spelling.ep
             : comm.group == GroupKind::kDpEp ? spelling.dp_ep
                                              : std::string_view();
    }
  }
  return {};
}

std::string_view closest_simai_comm(std::string_view word) {
  std::vector<std::string_view> all{"NONE"};
  for (const Spelling& spelling : kSpellings) {
    all.insert(all.end(), {spelling.plain, spelling.ep, spelling.dp_ep});
  }
  return closest(word, all);
}

std::span<const std::string_view> simai_policies() { return kPolicies; }

bool is_simai_policy(std::string_view name) {
  return std::find(kPolicies.begin(), kPolicies.end(), name) != kPolicies.end();
}

}  // namespace lockstep
