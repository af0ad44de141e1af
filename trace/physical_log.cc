#include "trace/physical_log.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace lockstep {

std::int32_t TextTable::index(std::string_view text) {
  const auto found = known_.find(text);
  if (found != known_.end()) {
    return found->second;
  }
  const auto next = static_cast<std::int32_t>(texts_.size());
  texts_.emplace_back(text);
  known_.emplace(text, next);
  return next;
}

const std::vector<std::int32_t>& members_of(const PhysicalLog& log, std::int32_t group) {
  static const std::vector<std::int32_t> none;
  const auto index = static_cast<std::size_t>(group);
  return group >= 0 && index < log.members.size() ? log.members[index] : none;
}

void keep_kernels_of_calls(PhysicalLog& log, const std::vector<std::size_t>& calls) {
  const auto communicates = [](const OpRow& op) { return op.kind == OpKind::kCommunication; };
  if (static_cast<std::size_t>(std::ranges::count_if(log.ops, communicates)) == calls.size()) {
    return;
  }
  for (const std::size_t call : calls) {
    log.ops[call].kind = OpKind::kHost;
  }
}

CommType comm_type_in(std::string_view name) {
  std::string letters;
  for (const char c : to_lower(name)) {
    if (c != '_' && c != '-' && c != ' ') {
      letters += c;
    }
  }
  // Longer words before those that they contain.
  constexpr std::pair<std::string_view, CommType> kWords[] = {
      {"allreduce", CommType::kAllReduce}, {"reducescatter", CommType::kReduceScatter},
      {"allgather", CommType::kAllGather}, {"alltoall", CommType::kAllToAll},
      {"all2all", CommType::kAllToAll},    {"sendrecv", CommType::kSendRecv},
      {"isend", CommType::kSendRecv},      {"irecv", CommType::kSendRecv},
      {"broadcast", CommType::kBroadcast}, {"bcast", CommType::kBroadcast},
      {"barrier", CommType::kBarrier},
  };
  std::size_t best = std::string::npos;
  CommType type = CommType::kNone;
  for (const auto& [word, meaning] : kWords) {
    const std::size_t at = letters.find(word);
    if (at < best) {
      best = at;
      type = meaning;
    }
  }
  if (type != CommType::kNone) {
    return type;
  }
  for (const std::string_view prefix : {"reduceperf", "reduce", "nccl:reduce", "ncclreduce",
                                        "ncclkernelreduce", "nccldevkernelreduce"}) {
    if (letters == prefix || (prefix.size() > 6 && letters.starts_with(prefix))) {
      return CommType::kReduce;
    }
  }
  if (letters == "send" || letters == "recv" || letters == "nccl:send" || letters == "nccl:recv") {
    return CommType::kSendRecv;
  }
  return CommType::kNone;
}

bool is_copy_kernel(std::string_view name) {
  return name.starts_with("Memcpy") || name.starts_with("Memset");
}

std::string_view pattern_in(std::string_view name) {
  if (comm_type_in(name) != CommType::kNone) {
    return {};
  }
  const std::string lower = to_lower(name);
  for (const std::string_view pattern : {"hypercube", "gather", "scatter"}) {
    if (lower.find(pattern) != std::string::npos) {
      return pattern;
    }
  }
  return {};
}

}  // namespace lockstep
