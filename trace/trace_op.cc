#include "trace/trace_op.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, kTraceOpCount> kNames = {
    "backward-compute",
    "backward-recv",
    "backward-send",
    "backward-tp-comm",
    "embedding-grads-all-reduce",
    "forward-compute",
    "forward-recv",
    "forward-send",
    "forward-tp-comm",
    "gc",
    "grads-reduce-scatter",
    "layernorm-grads-all-reduce",
    "optimizer",
    "optimizer-clip-main-grad",
    "params-all-gather",
    "separate-grads-all-reduce",
    "weight-compute",
    "weight-tp-comm",
};
static_assert(std::is_sorted(kNames.begin(), kNames.end()));

}  // namespace

const std::array<std::string_view, kTraceOpCount>& trace_op_names() { return kNames; }

std::string_view to_text(TraceOp type) { return kNames[index(type)]; }

std::optional<TraceOp> trace_op_named(std::string_view name) {
  const auto found = std::lower_bound(kNames.begin(), kNames.end(), name);
  if (found == kNames.end() || *found != name) {
    return std::nullopt;
  }
  return static_cast<TraceOp>(found - kNames.begin());
}

}  // namespace lockstep
