#include "simulator/replay/begun_order.h"

#include <cstddef>

#include "base/error.h"
#include "base/index.h"

namespace lockstep {

bool BegunOrder::may_begin(const Begun& begun, std::int32_t rank, const ProgramOp& op) const {
  const std::int32_t group = op.family < 0 ? -1 : work_.families[at(op.family)].group_of(rank);
  if (group < 0 || order_.empty()) {
    return true;
  }
  const std::vector<std::int32_t>& order = order_[at(op.family)][at(group)];
  const std::size_t next = begun.empty() ? 0 : at(begun[at(op.family)]);
  return next >= order.size() || order[next] == op.sequence;
}

void BegunOrder::begin(Begun& begun, std::int32_t rank, const ProgramOp& op) {
  LOCKSTEP_CHECK(may_begin(begun, rank, op), "peers' collectives come first");
  const std::int32_t group = op.family < 0 ? -1 : work_.families[at(op.family)].group_of(rank);
  if (group < 0) {
    return;
  }
  if (order_.empty()) {
    for (const CommFamily& family : work_.families) {
      order_.emplace_back(family.groups().size());
    }
  }
  begun.resize(order_.size());
  std::vector<std::int32_t>& order = order_[at(op.family)][at(group)];
  if (at(begun[at(op.family)]++) >= order.size()) {
    order.push_back(op.sequence);
  }
}

}  // namespace lockstep
