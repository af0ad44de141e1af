#include "simulator/replay/lone_passes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace lockstep {
namespace {

bool is_pass(OpType type) {
  return type == OpType::kForward || type == OpType::kBackward || type == OpType::kWeightGradient;
}

/// Whether it is one of a pass or of the step's end, or something of those may wait for it.
bool is_played(OpType type) {
  return is_pass(type) || type == OpType::kGatherParameters || type == OpType::kReduceGradients ||
         type == OpType::kClip;
}

/// The collectives of a worker so far, each from its launch to its end.
class Collectives {
 public:
  explicit Collectives(const Interference& model) : model_(model) {}
  void add(Time begin, Time end, std::int32_t taken) { all_.push_back({begin, end, taken}); }

  /// When a computation of this length ends beside them. PRECONDITION: none has begun later yet.
  Time end_of(Time begin, Time length) {
    std::erase_if(all_, [&](const Collective& each) { return each.end <= begin; });
    auto left = static_cast<double>(length.count_ps());
    for (;;) {
      std::int32_t taken = 0;
      Time next = Time::max();
      for (const Collective& each : all_) {
        taken += each.begin <= begin && begin < each.end ? each.taken : 0;
        next = each.begin > begin ? std::min(next, each.begin) : next;
        next = each.end > begin ? std::min(next, each.end) : next;
      }
      const double speed = model_.speed(taken);
      const Time end = begin + Time::ps(static_cast<std::int64_t>(std::ceil(left / speed)));
      if (end <= next) {
        return end;
      }
      left -= static_cast<double>((next - begin).count_ps()) * speed;
      begin = next;
    }
  }

 private:
  struct Collective {
    Time begin, end;
    std::int32_t taken = 0;
  };
  const Interference& model_;
  std::vector<Collective> all_;
};

struct Played {
  Time begin = Time::max(), end, computed;
  Time undisturbed;  // what it computes beside no collectives
  Time beside;       // what a pass computes that takes turns with it
};

/// The reductions of the gradients that a pass makes, by themselves.
struct Reduced {
  Time takes, through;  // all of them; when they are
};

/// Of passes that run side by side each begins with the other, and waits for what that computes.
void join_turns(std::map<PassKey, Played>& passes) {
  std::vector<Played*> in_order;
  in_order.reserve(passes.size());
  for (auto& [key, pass] : passes) {
    in_order.push_back(&pass);
  }
  std::ranges::stable_sort(in_order, {}, &Played::begin);
  for (std::size_t i = 1; i < in_order.size(); ++i) {
    Played &first = *in_order[i - 1], &second = *in_order[i];
    if (second.begin < first.end) {
      second.begin = first.begin;
      first.beside = second.computed;
      second.beside = first.computed;
    }
  }
}

}  // namespace

LonePasses lone_passes(const OpProgram& program, std::span<const Time> takes,
                       const Interference& interference, std::span<const std::int32_t> taken,
                       bool take_turns) {
  const bool gathers = std::ranges::any_of(program.ops, [](const Op& op) {
    return op.type == OpType::kGatherParameters && op.microbatch >= 0;
  });
  std::map<PassKey, Played> passes;
  std::map<std::int32_t, Time> passed, reduced;  // of each chunk: when its last one ends
  std::map<std::pair<std::int32_t, std::int32_t>, Time> pass_ends;  // of a chunk and microbatch
  std::map<std::pair<std::int32_t, std::int32_t>, Reduced> reductions;
  std::vector<Time> end(program.ops.size());
  std::vector<Time> busy(program.streams.size());
  std::optional<Played> clip;
  Collectives beside(interference);
  Time ended, launched;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.type == OpType::kForwardReceive || op.type == OpType::kBackwardReceive) {
      end[i] = takes[i];
      continue;
    }
    if (!is_played(op.type)) {
      for (const std::int32_t earlier : op.after) {
        end[i] = std::max(end[i], end[static_cast<std::size_t>(earlier)]);
      }
      continue;
    }
    Time& stream = busy[static_cast<std::size_t>(op.stream)];
    Time ready;
    for (const std::int32_t earlier : op.after) {
      ready = std::max(ready, end[static_cast<std::size_t>(earlier)]);
    }
    Time begin = std::max(stream, ready);
    launched += op.host;
    begin = op.host > Time() ? std::max(begin, launched) : begin;
    const bool computes = op.comm == CommType::kNone;
    end[i] = stream =
        computes && !taken.empty() ? beside.end_of(begin, takes[i]) : begin + takes[i];
    if (!taken.empty() && taken[i] > 0) {
      beside.add(begin, end[i], taken[i]);
    }
    if (is_pass(op.type)) {
      const auto [found, is_new] = passes.try_emplace({op.type, op.chunk, op.microbatch});
      Played& own = found->second;
      own.begin = std::min(own.begin, is_new && gathers ? ended : begin);
      own.end = std::max(own.end, end[i]);
      own.computed += computes ? end[i] - begin : Time();
      own.undisturbed += computes ? takes[i] : Time();
      if (op.type != OpType::kForward) {
        passed[op.chunk] = std::max(passed[op.chunk], end[i]);
        Time& pass_end = pass_ends[{std::max(0, op.chunk), op.microbatch}];
        pass_end = std::max(pass_end, end[i]);
      }
    } else if (op.type == OpType::kReduceGradients) {
      reduced[op.chunk] = std::max(reduced[op.chunk], end[i]);
      Reduced& own = reductions[{std::max(0, op.chunk), op.microbatch}];
      own.takes += takes[i];
      own.through = std::max(own.through, ready) + takes[i];
      continue;
    } else if (op.type == OpType::kClip) {
      clip = clip.value_or(Played{.begin = begin});
      clip->end = std::max(clip->end, end[i]);
      continue;
    } else {
      continue;
    }
    ended = std::max(ended, end[i]);
  }
  if (take_turns) {
    join_turns(passes);
  }
  LonePasses result;
  if (clip) {
    result.clip = clip->end - clip->begin;
  }
  for (const auto& [key, pass] : passes) {
    const Time length = pass.end - pass.begin;
    result.waits.emplace(key, length - std::min(length, pass.computed + pass.beside));
    result.computes.emplace(key, pass.computed);
    result.undisturbed.emplace(key, pass.undisturbed);
  }
  for (const auto& [pass, own] : reductions) {
    const Time behind = std::min(own.takes, own.through - std::min(own.through, pass_ends[pass]));
    result.reductions_of_passes.emplace(
        pass, LonePasses::Reduction{.beside = own.takes - behind, .behind = behind});
  }
  // One stream has the gradients of all chunks.
  std::vector<std::pair<Time, std::int32_t>> ends;
  ends.reserve(reduced.size());
  for (const auto& [chunk, last] : reduced) {
    ends.emplace_back(last, chunk);
  }
  std::ranges::sort(ends);
  Time before;
  for (const auto& [last, chunk] : ends) {
    const Time from = std::max(before, passed[chunk]);
    result.reductions.emplace(chunk, std::max(last, from) - from);
    before = std::max(last, from);
  }
  return result;
}

}  // namespace lockstep
