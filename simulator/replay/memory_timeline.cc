#include "simulator/replay/memory_timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

struct Pass {
  Time begin, end;
};

void extend(std::optional<Pass>& pass, const OpTiming& timing) {
  if (!pass) {
    pass = Pass{timing.begin, timing.end};
    return;
  }
  pass->begin = std::min(pass->begin, timing.begin);
  pass->end = std::max(pass->end, timing.end);
}

/// A microbatch in a chunk.
struct Microbatch {
  std::optional<Pass> forward, backward, weights;
};

struct Change {
  Time when;
  std::int64_t kept = 0;                   // bytes
  std::int32_t forward = 0, backward = 0;  // passes under way
  bool ends() const { return kept < 0 || forward < 0 || backward < 0; }
};

void add_pass(const std::optional<Pass>& pass, std::int32_t Change::*under_way,
              std::vector<Change>& changes) {
  if (pass) {
    Change begin{pass->begin}, end{pass->end};
    begin.*under_way = 1;
    end.*under_way = -1;
    changes.push_back(begin);
    changes.push_back(end);
  }
}

std::vector<Change> changes_of(const Program& program, std::span<const OpTiming> timing,
                               const RankMemory& memory) {
  std::map<std::pair<std::int32_t, std::int32_t>, Microbatch> all;  // by microbatch and chunk
  for (std::size_t i = 0; i < timing.size(); ++i) {
    const ProgramOp& op = program.ops()[i];
    if (op.microbatch < 0) {
      continue;
    }
    Microbatch& of = all[{op.microbatch, std::max<std::int32_t>(0, op.chunk)}];
    if (op.type == OpType::kForward) {
      extend(of.forward, timing[i]);
    } else if (op.type == OpType::kBackward) {
      extend(of.backward, timing[i]);
    } else if (op.type == OpType::kWeightGradient) {
      extend(of.weights, timing[i]);
    }
  }
  std::vector<Change> changes;
  for (const auto& [key, of] : all) {
    const auto chunk = static_cast<std::size_t>(key.second);
    const std::int64_t kept = chunk < memory.kept.size() ? memory.kept[chunk].count() : 0;
    if (of.backward && of.weights && chunk < memory.again.size()) {
      const std::int64_t again = memory.again[chunk].count();
      changes.push_back({of.backward->begin, again});
      changes.push_back({of.weights->end, -again});
    }
    if (of.forward) {
      changes.push_back({of.forward->begin, kept});
      const std::optional<Pass>& last = of.weights ? of.weights : of.backward;
      if (last) {
        changes.push_back({last->end, -kept});
      }
    }
    add_pass(of.forward, &Change::forward, changes);
    add_pass(of.backward, &Change::backward, changes);
    add_pass(of.weights, &Change::backward, changes);
  }
  std::ranges::stable_sort(changes, {}, [](const Change& change) {
    return std::pair(change.when, change.ends() ? 0 : 1);
  });
  return changes;
}

}  // namespace

MemoryTimeline memory_timeline(const Program& program, std::span<const OpTiming> timing,
                               const RankMemory& memory) {
  MemoryTimeline result;
  result.peak = memory.always;
  result.points.push_back({Time(), memory.always});
  const std::vector<Change> changes = changes_of(program, timing, memory);
  std::int64_t kept = 0, forward = 0, backward = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    kept += changes[i].kept;
    forward += changes[i].forward;
    backward += changes[i].backward;
    if (i + 1 < changes.size() && changes[i + 1].when == changes[i].when) {
      continue;
    }
    const Bytes within = std::max(forward > 0 ? memory.within_forward : Bytes(),
                                  backward > 0 ? memory.within_backward : Bytes());
    const Bytes held = memory.always + Bytes(kept) + within;
    if (held == result.points.back().held) {
      continue;
    }
    if (result.points.back().when == changes[i].when) {
      result.points.back().held = held;
    } else {
      result.points.push_back({changes[i].when, held});
    }
    if (held > result.peak) {
      result.peak = held;
      result.peak_at = changes[i].when;
    }
  }
  return result;
}

}  // namespace lockstep
