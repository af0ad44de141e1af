#include "simulator/replay/formula_runs.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

FormulaRuns::FormulaRuns(const RankPrograms& work, std::span<const std::int32_t> stands_for,
                         const CommFormula& formula, Finished finished)
    : work_(work), stands_for_(stands_for), formula_(formula), finished_(std::move(finished)) {
  for (const CommFamily& family : work.families) {
    std::map<std::vector<std::int32_t>, std::int32_t> known;
    std::vector<std::int32_t>& numbers = number_.emplace_back();
    for (const std::vector<std::int32_t>& group : family.groups()) {
      std::vector<std::int32_t> ranks;
      ranks.reserve(group.size());
      for (const std::int32_t member : group) {
        ranks.push_back(stands_for[index(member)]);
      }
      std::ranges::sort(ranks);
      ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
      const auto [at, is_new] =
          known.try_emplace(ranks, static_cast<std::int32_t>(waits_for_.size()));
      if (is_new) {
        waits_for_.push_back(std::move(ranks));
      }
      numbers.push_back(at->second);
    }
  }
}

std::span<const std::int32_t> FormulaRuns::members(std::int32_t rank, const ProgramOp& op) const {
  const CommFamily& family = work_.families[index(op.family)];
  const std::int32_t group = family.group_of(rank);
  LOCKSTEP_CHECK(group >= 0, "a rank uses only communicators it belongs to");
  return family.groups()[index(group)];
}

std::int32_t FormulaRuns::number_of(std::int32_t rank, const ProgramOp& op) const {
  const std::int32_t group = work_.families[index(op.family)].group_of(rank);
  LOCKSTEP_CHECK(group >= 0, "a rank uses only communicators it belongs to");
  return number_[index(op.family)][index(group)];
}

std::int32_t FormulaRuns::peer_of(std::int32_t rank, const ProgramOp& op) const {
  if (op.family < 0) {
    return op.peer;
  }
  const std::span<const std::int32_t> group = members(rank, op);
  const std::int32_t place = work_.families[index(op.family)].place_of(rank) + op.peer;
  return group[index(place) % group.size()];
}

FormulaRuns::Key FormulaRuns::key_of(std::int32_t rank, const ProgramOp& op) const {
  if (op.family >= 0 && (op.comm != CommType::kSendRecv || op.peer < 0)) {
    return {op.family, number_of(rank, op), 0, 0, op.sequence};
  }
  const std::int32_t here = stands_for_[index(rank)];
  const std::int32_t there = stands_for_[index(peer_of(rank, op))];
  std::int32_t places = 0;
  if (op.family >= 0) {
    places = op.send ? op.peer : static_cast<std::int32_t>(members(rank, op).size()) - op.peer;
  }
  return {op.family < 0 ? -1 : -2 - op.family, op.send ? here : there, op.send ? there : here,
          places, op.sequence};
}

void FormulaRuns::enter(std::int32_t rank, std::int32_t op_index, Time now) {
  const ProgramOp& op = work_.program(rank).ops()[index(op_index)];
  const Key key = key_of(rank, op);
  const bool message = std::get<0>(key) < 0;
  if (!message && members(rank, op).size() < 2) {
    finished_(rank, op_index, now);
    return;
  }
  const auto [found, is_new] = open_.try_emplace(key);
  Run& run = found->second;
  if (is_new) {
    run.comm = op.comm;
    run.to_come = message ? 2 : waits_for_[index(number_of(rank, op))].size();
  }
  if (run.comm != op.comm) {
    throw Error(fmt::format("rank {} enters a collective as {} that rank {} has entered as {}",
                            rank, name_of(op.comm), run.entered.front().first, name_of(run.comm)));
  }
  run.entered.emplace_back(rank, op_index);
  --run.to_come;
  if (message ? op.send : run.to_come == 0) {
    run.moved = now;
    run.end = now + (message ? formula_.message(op, rank, peer_of(rank, op))
                             : formula_.collective(op, work_.families[index(op.family)].kind(),
                                                   members(rank, op)));
    ends_.push({run.end, ++order_, key});
  } else if (run.end <= now) {
    ends_.push({now, ++order_, key});  // a message that has come already
  }
}

Time FormulaRuns::advance(Time limit) {
  happened_ = !ends_.empty() && ends_.top().when <= limit;
  if (happened_) {
    now_ = ends_.top().when;
  } else if (limit != Time::max()) {
    now_ = limit;
  }
  return now_;
}

void FormulaRuns::dispatch(Time now) {
  happened_ = false;
  while (!ends_.empty() && ends_.top().when <= now) {
    const Key key = ends_.top().key;
    ends_.pop();
    const auto found = open_.find(key);
    if (found == open_.end()) {
      continue;  // both ends of a message named this moment; the first has ended it
    }
    const auto entered = std::move(found->second.entered);
    const Time moved = found->second.moved;
    found->second.entered.clear();
    if (found->second.to_come == 0) {
      open_.erase(found);
    }
    for (const auto& [rank, op] : entered) {
      finished_(rank, op, moved);
    }
  }
}

std::vector<std::int32_t> FormulaRuns::missing(std::int32_t rank, std::int32_t op_index) const {
  const ProgramOp& op = work_.program(rank).ops()[index(op_index)];
  const Key key = key_of(rank, op);
  std::vector<std::int32_t> missing;
  if (std::get<0>(key) < 0) {
    missing = {std::get<1>(key), std::get<2>(key)};
  } else {
    missing = waits_for_[index(number_of(rank, op))];
  }
  if (const auto found = open_.find(key); found != open_.end()) {
    for (const auto& [there, its_op] : found->second.entered) {
      std::erase(missing, there);
    }
  }
  return missing;
}

}  // namespace lockstep
