#include "workloads/comm.h"

#include <array>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 9> kCommNames{"none",          "allreduce", "allgather",
                                                     "reducescatter", "alltoall",  "broadcast",
                                                     "reduce",        "sendrecv",  "barrier"};
constexpr std::array<std::string_view, 7> kGroupNames{"tp", "dp", "ep",   "dp_ep",
                                                      "pp", "cp", "world"};

template <class Enum, std::size_t N>
std::optional<Enum> named(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(CommType type) { return kCommNames[static_cast<std::size_t>(type)]; }
std::string_view name_of(GroupKind kind) { return kGroupNames[static_cast<std::size_t>(kind)]; }
std::optional<CommType> comm_type_named(std::string_view name) {
  return named<CommType>(kCommNames, name);
}
std::optional<GroupKind> group_kind_named(std::string_view name) {
  return named<GroupKind>(kGroupNames, name);
}

}  // namespace lockstep
