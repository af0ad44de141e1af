#include "workloads/op_type.h"

#include <array>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, kOpTypes> kNames{"other",
                                                        "forward-compute",
                                                        "backward-compute",
                                                        "weight-compute",
                                                        "forward-send",
                                                        "forward-recv",
                                                        "backward-send",
                                                        "backward-recv",
                                                        "params-all-gather",
                                                        "grads-reduce-scatter",
                                                        "embedding-grads-all-reduce",
                                                        "layernorm-grads-all-reduce",
                                                        "optimizer-clip-main-grad",
                                                        "optimizer",
                                                        "loss-all-reduce"};

}  // namespace

std::string_view name_of(OpType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<OpType> op_type_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) {
      return static_cast<OpType>(i);
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
