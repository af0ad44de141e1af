// What is said of a replay that cannot go on.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"
#include "simulator/replay/replay_run.h"

namespace lockstep {

/// Names the first few ranks that cannot go on, what they are in and whom they wait for.
void ReplayRun::stuck() const {
  constexpr std::size_t kShown = 4;
  if (const std::vector<StuckMessage> messages = runs_->stuck(); !messages.empty()) {
    std::string text;
    std::size_t shown = 0;
    for (std::size_t i = 0; i < messages.size() && shown <= kShown; ++i) {
      const StuckMessage& m = messages[i];
      if (std::find(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(i), m) !=
              messages.begin() + static_cast<std::ptrdiff_t>(i) ||
          ++shown > kShown) {
        continue;  // told, or too many
      }
      const ProgramOp& what = op_of(m.rank, m.op);
      text += fmt::format(
          "\n  rank {}: in {} ({} of {}), {} over link {}-{}, down since {}", m.rank,
          name_of(m.rank, m.op), lockstep::name_of(what.comm), to_text(what.bytes),
          m.peer >= 0 ? fmt::format("sending to rank {}", m.peer) : "to or from its switch",
          m.ends.first.value, m.ends.second.value, to_text(m.since));
    }
    throw Error(fmt::format("the step hangs: {} transfers wait for links that are down{}{}",
                            messages.size(), text, shown > kShown ? "\n  …" : ""))
        .hint("give the fault an end (@10ms-20ms), a time to reroute, or the fabric another way");
  }
  std::size_t stuck_ranks = 0;
  std::string text;
  for (const std::int32_t r : simulated_) {
    const RankState& rank = ranks_[index(r)];
    if (rank.left == 0 || ++stuck_ranks > kShown) {
      continue;
    }
    text += fmt::format("\n  rank {}: {}", r, why_stuck(r));
  }
  const bool newest_first = std::ranges::any_of(work_.programs, [](const Program& program) {
    return std::ranges::find(program.streams(), StreamOrder::kNewestFirst) !=
           program.streams().end();
  });
  throw Error(fmt::format("the step cannot finish: {} of {} ranks wait for each other{}{}",
                          stuck_ranks, simulated_.size(), text,
                          stuck_ranks > kShown ? "\n  …" : ""))
      .hint(newest_first
                ? "each takes its newest collective first, one at a time, as SimAI does; ranks of "
                  "several groups at different speeds may wait in a circle then: flavour default "
                  "has no such queue"
                : "look for a communication that some rank of the group never reaches");
}

std::string ReplayRun::name_of(std::int32_t r, std::int32_t op) const {
  return options_.op_name ? options_.op_name(r, op) : fmt::format("op {}", op);
}

std::string ReplayRun::why_stuck(std::int32_t r) const {
  const RankState& rank = ranks_[index(r)];
  const Program& program = work_.program(r);
  for (std::size_t i = 0; i < program.ops().size(); ++i) {
    const auto op = static_cast<std::int32_t>(i);
    if (rank.waits[op] != 0 || program.ops()[i].comm == CommType::kNone) {
      continue;
    }
    const std::vector<std::int32_t> missing = runs_->missing(r, op);
    if (!missing.empty() && std::ranges::find(missing, r) == missing.end()) {
      return fmt::format(
          "in {} ({} of {}), waiting for rank {} to enter it", name_of(r, op),
          lockstep::name_of(program.ops()[i].comm), to_text(program.ops()[i].bytes),
          fmt::join(missing.begin(),
                    missing.begin() + std::min<std::ptrdiff_t>(4, std::ssize(missing)), ", "));
    }
  }
  return fmt::format("{} operations left, none of them can start", rank.left);
}

}  // namespace lockstep
