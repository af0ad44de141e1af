#include "simulator/replay/program.h"

#include <map>
#include <tuple>

#include "base/error.h"

namespace lockstep {

Program::Program(std::vector<StreamOrder> streams) : streams_(std::move(streams)) {
  stream_ops_.resize(streams_.size());
}

std::int32_t Program::add(ProgramOp op, std::span<const std::int32_t> after) {
  const auto index = static_cast<std::int32_t>(ops_.size());
  for (const std::int32_t earlier : after) {
    LOCKSTEP_CHECK(earlier >= 0 && earlier < index, "an operation may only wait for earlier ones");
  }
  stream_ops_[static_cast<std::size_t>(op.stream)].push_back(index);
  ops_.push_back(op);
  predecessors_.insert(predecessors_.end(), after.begin(), after.end());
  dependency_counts_.push_back(static_cast<std::int32_t>(after.size()));
  return index;
}

void Program::finish() {
  successor_begin_.assign(ops_.size() + 1, 0);
  for (const std::int32_t earlier : predecessors_) {
    ++successor_begin_[static_cast<std::size_t>(earlier) + 1];
  }
  for (std::size_t i = 1; i < successor_begin_.size(); ++i) {
    successor_begin_[i] += successor_begin_[i - 1];
  }
  successors_.resize(predecessors_.size());
  std::vector<std::size_t> next(successor_begin_.begin(), successor_begin_.end() - 1);
  std::size_t read = 0;
  // Operations on one communicator are matched by their order in the program, as NCCL does.
  std::map<std::tuple<std::int32_t, std::int32_t, bool>, std::int32_t> used;
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    for (std::int32_t i = 0; i < dependency_counts_[op]; ++i) {
      const auto earlier = static_cast<std::size_t>(predecessors_[read++]);
      successors_[next[earlier]++] = static_cast<std::int32_t>(op);
    }
    if (ops_[op].comm != CommType::kNone) {
      ops_[op].sequence = used[{ops_[op].family, ops_[op].peer, ops_[op].send}]++;
    }
  }
  predecessors_ = {};
}

void Program::shift(std::int32_t families, std::int32_t ranks) {
  for (ProgramOp& op : ops_) {
    op.family += op.family >= 0 ? families : 0;
    op.peer += op.peer >= 0 && op.family < 0 ? ranks : 0;
  }
}

CommFamily::CommFamily(GroupKind kind, std::vector<std::vector<std::int32_t>> members,
                       std::int32_t ranks, bool plain)
    : kind_(kind),
      plain_(plain),
      members_(std::move(members)),
      group_(static_cast<std::size_t>(ranks), -1),
      place_(static_cast<std::size_t>(ranks), -1) {
  for (std::size_t g = 0; g < members_.size(); ++g) {
    for (std::size_t i = 0; i < members_[g].size(); ++i) {
      const auto rank = static_cast<std::size_t>(members_[g][i]);
      LOCKSTEP_CHECK(rank < group_.size() && group_[rank] == -1,
                     "the groups of a family hold each rank at most once");
      group_[rank] = static_cast<std::int32_t>(g);
      place_[rank] = static_cast<std::int32_t>(i);
    }
  }
}

}  // namespace lockstep
