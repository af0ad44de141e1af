#include "generator/exact/interleave.h"

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
  while (passes[0].next < passes[0].end || passes[1].next < passes[1].end) {
    const bool second = passes[0].next == passes[0].end ||
                        (passes[1].next < passes[1].end && passes[1].share() < passes[0].share());
    Turns& pass = passes[second ? 1 : 0];
    bool computed = false;
    while (!computed && pass.next < pass.end) {
      const Op& op = ops[pass.next];
      computed = op.comm == CommType::kNone;
      pass.done += work_of(op);
      order.push_back(pass.next++);
    }
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
