// What a worker of a traced step would wait for if nobody were late.
#include <algorithm>
#include <set>

#include "simulator/replay/step_trace.h"

namespace lockstep {

StepTrace::Meetings StepTrace::meetings() const {
  Meetings meetings;
  meetings.all.resize(families_.size());
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    for (const Entry& entry : entries_[w]) {
      if (entry.sequence < 0) {
        continue;
      }
      const auto family = static_cast<std::size_t>(entry.family);
      const auto group = static_cast<std::size_t>(
          families_[family].group[static_cast<std::size_t>(workers_[w].rank)]);
      const auto sequence = static_cast<std::size_t>(entry.sequence);
      auto& of_family = meetings.all[family];
      of_family.resize(std::max(of_family.size(), group + 1));
      std::vector<Meeting>& own = of_family[group];
      own.resize(std::max(own.size(), sequence + 1));
      own[sequence].first = std::min(own[sequence].first, entry.begin);
      own[sequence].end = std::max(own[sequence].end, entry.end);
    }
  }
  return meetings;
}

/// The ranks of a stage's groups: whole groups, of which perhaps only the first are recorded.
std::vector<std::int32_t> StepTrace::of_stage(const Family& family, std::int32_t stage) const {
  std::set<std::int32_t> groups;
  for (const Worker& each : workers_) {
    if (each.stage == stage && family.group[static_cast<std::size_t>(each.rank)] >= 0) {
      groups.insert(family.group[static_cast<std::size_t>(each.rank)]);
    }
  }
  std::vector<std::int32_t> ranks;
  for (std::size_t rank = 0; rank < family.group.size(); ++rank) {
    if (groups.contains(family.group[rank])) {
      ranks.push_back(static_cast<std::int32_t>(rank));
    }
  }
  return ranks;
}

/// How long an operation takes where nobody is late. Where one enters a collective late, others may
/// be through with it before the last, and a part may have been moved before.
Time StepTrace::takes(const Worker& worker, const Entry& entry, const Together& together,
                      Meetings& meetings) const {
  constexpr double kLate = 0.01;  // of what is left then
  const Time last = std::max(entry.begin, entry.moved);
  if (entry.sequence < 0) {
    return entry.end - last - entry.slowed;
  }
  const Family& family = families_[static_cast<std::size_t>(entry.family)];
  const auto group = static_cast<std::size_t>(family.group[static_cast<std::size_t>(worker.rank)]);
  const Meeting& meeting = meetings.all[static_cast<std::size_t>(entry.family)][group]
                                       [static_cast<std::size_t>(entry.sequence)];
  const Time seen = meeting.end - last;
  // A pass that gathers parameters is shorter by what the last one finds done (Replacement).
  if (gathers_in_passes_ > 0 && entry.begin == last) {
    return seen;
  }
  if (!together || !family.within_stages || entry.type == OpType::kClip ||
      (last - meeting.first).seconds() <= kLate * seen.seconds()) {
    return seen;
  }
  const auto [kind, is_new] =
      meetings.together.try_emplace({entry.family, entry.comm, entry.bytes.count(), worker.stage});
  if (is_new) {
    const std::vector<std::int32_t> ranks = of_stage(family, worker.stage);
    ProgramOp op;
    op.comm = entry.comm;
    op.bytes = entry.bytes;
    op.family = entry.family;
    kind->second = ranks.size() <= kMostTogether ? together(op, ranks) : Time();
  }
  return std::max(seen, kind->second);
}

LonePasses StepTrace::lone_passes(std::size_t worker, const Together& together,
                                  Meetings& meetings) const {
  const OpProgram& program = *workers_[worker].program;
  std::vector<Time> takes(program.ops.size());
  std::vector<std::int32_t> taken(interference_.any() ? program.ops.size() : 0);
  for (const Entry& entry : entries_[worker]) {
    if (entry.type == OpType::kForwardReceive || entry.type == OpType::kBackwardReceive) {
      takes[static_cast<std::size_t>(entry.op)] =
          side_by_side_ || gathers_in_passes_ > 0 ? Time() : entry.end;
      continue;
    }
    takes[static_cast<std::size_t>(entry.op)] =
        this->takes(workers_[worker], entry, together, meetings);
    if (!taken.empty()) {
      taken[static_cast<std::size_t>(entry.op)] = entry.taken;
    }
  }
  return lockstep::lone_passes(program, takes, interference_, taken, side_by_side_);
}

}  // namespace lockstep
