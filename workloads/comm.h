#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

enum class CommType : std::uint8_t {
  kNone,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kSendRecv,
  kBarrier,
};

/// Which ranks communicate: a kind of parallelism. kDpEp is data parallelism among the ranks that
/// hold the same experts (Megatron's expert-data-parallel group).
enum class GroupKind : std::uint8_t { kTp, kDp, kEp, kDpEp, kPp, kCp, kWorld };

std::string_view name_of(CommType type);   ///< "allreduce", "none", …: the spelling of our JSON
std::string_view name_of(GroupKind kind);  ///< "tp", "dp", "ep", "dp_ep", "pp", "cp", "world"
std::optional<CommType> comm_type_named(std::string_view name);
std::optional<GroupKind> group_kind_named(std::string_view name);

}  // namespace lockstep
