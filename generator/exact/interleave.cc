#include "generator/exact/interleave.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep {
namespace {

struct Turns {
  std::size_t next, end;
  double total = 0, done = 0;  // compute, in ps

  double share() const { return total > 0 ? done / total : 1; }
};

double work_of(const Op& op) {
  return op.comm == CommType::kNone ? static_cast<double>(op.compute.count_ps()) : 0;
}

bool computes(const Op& op) { return op.comm == CommType::kNone; }

/// Whether an operation waits for a collective among those from `begin` on. (What comes from other
/// stages comes when it may.)
bool waits_for_collective(const std::vector<Op>& ops, const Op& op, std::size_t begin) {
  return std::ranges::any_of(op.after, [&](std::int32_t earlier) {
    const auto at = static_cast<std::size_t>(earlier);
    return at >= begin && !computes(ops[at]) && ops[at].comm != CommType::kSendRecv;
  });
}

}  // namespace

std::vector<std::int32_t> interleave(std::vector<Op>& ops, std::size_t begin, std::size_t middle) {
  Turns passes[2] = {{begin, middle}, {middle, ops.size()}};
  for (Turns& pass : passes) {
    for (std::size_t i = pass.next; i < pass.end; ++i) {
      pass.total += work_of(ops[i]);
    }
  }
  std::vector<std::size_t> order;
  order.reserve(ops.size() - begin);
  bool other_waits = false;
  for (int turn = 0; order.size() < ops.size() - begin; turn = 1 - turn) {
    Turns &pass = passes[turn], &other = passes[1 - turn];
    const std::size_t start = pass.next;
    bool waits = false;
    while (pass.next < pass.end) {
      const Op& op = ops[pass.next];
      waits = computes(op) && waits_for_collective(ops, op, start);
      if (waits) {
        break;
      }
      pass.done += work_of(op);
      order.push_back(pass.next++);
      if (computes(op) && !other_waits && other.next < other.end && other.share() < pass.share()) {
        break;
      }
    }
    other_waits = waits;
  }
  std::vector<std::int32_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i] - begin] = static_cast<std::int32_t>(begin + i);
  }
  std::vector<Op> taken;
  taken.reserve(order.size());
  for (const std::size_t i : order) {
    Op& op = taken.emplace_back(std::move(ops[i]));
    for (std::int32_t& earlier : op.after) {
      if (static_cast<std::size_t>(earlier) >= begin) {
        earlier = place[static_cast<std::size_t>(earlier) - begin];
      }
    }
  }
  std::move(taken.begin(), taken.end(), ops.begin() + static_cast<std::ptrdiff_t>(begin));
  return place;
}

}  // namespace lockstep
