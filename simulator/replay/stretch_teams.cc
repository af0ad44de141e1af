#include "simulator/replay/stretch_teams.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "base/index.h"

namespace lockstep {

std::size_t StretchTeams::Hash::operator()(const std::vector<std::int64_t>& key) const noexcept {
  std::uint64_t hash = 0x9E3779B97F4A7C15U;
  for (const std::int64_t part : key) {
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0xFF51AFD7ED558CCDU;
    hash ^= hash >> 32;
  }
  return hash;
}

StretchTeams::StretchTeams(const RankPrograms& work, const StepFold& fold, const FoldedRuns& runs,
                           const Stretches& stretches)
    : work_(work), team_of_(fold.communicators.size(), -1) {
  std::set<std::int32_t> families;
  for (const Stretch& stretch : stretches.all()) {
    families.insert(stretch.family);
  }
  std::vector<std::vector<std::int32_t>> family_of_kind(work.programs.size());
  for (std::size_t p = 0; p < work.programs.size(); ++p) {
    for (const ProgramFacts::Kind& kind : fold.facts->kinds[p]) {
      const std::int32_t family = std::get<0>(kind), peer = std::get<4>(kind);
      family_of_kind[p].push_back(peer < 0 && families.contains(family) ? family : -1);
    }
  }
  std::vector<std::int32_t> family_of(fold.communicators.size(), -1);
  for (std::size_t c = 0; c < fold.representative.size(); ++c) {
    const auto& of_kind = family_of_kind[at(work.program_of_rank[at(fold.representative[c])])];
    for (std::size_t kind = 0; kind < of_kind.size(); ++kind) {
      const std::int32_t communicator = fold.communicator_of[c][kind];
      if (communicator >= 0) {
        family_of[at(communicator)] = of_kind[kind];
      }
    }
  }
  std::map<std::pair<std::int32_t, std::vector<std::int32_t>>, std::int32_t> known;
  constexpr std::int32_t kNobody = -1, kSeveral = -2;
  std::vector<std::int32_t> owner(fold.graph.capacity.size(), kNobody);  // teams
  for (std::size_t c = 0; c < fold.communicators.size(); ++c) {
    if (family_of[c] < 0) {
      continue;
    }
    const auto next = static_cast<std::int32_t>(teams_.size());
    const auto [found, is_new] =
        known.try_emplace({family_of[c], fold.communicators[c].classes}, next);
    const std::int32_t team = team_of_[c] = found->second;
    if (is_new) {
      Team& added = teams_.emplace_back();
      for (const std::int32_t each : fold.communicators[c].classes) {
        added.ranks.push_back(fold.representative[at(each)]);
      }
    }
    teams_[at(team)].communicators.push_back(static_cast<std::int32_t>(c));
    for (const std::int32_t constraint : runs.constraints(static_cast<std::int32_t>(c))) {
      std::int32_t& its = owner[at(constraint)];
      its = its == kNobody || its == team ? team : kSeveral;
    }
  }
  for (std::size_t number = 0; number < teams_.size(); ++number) {
    const Team& team = teams_[number];
    bool possible = std::ranges::all_of(team.ranks, [&](std::int32_t rank) {
      return work.program_of_rank[at(rank)] == work.program_of_rank[at(team.ranks.front())];
    });
    for (const std::int32_t communicator : team.communicators) {
      for (const std::int32_t constraint : runs.constraints(communicator)) {
        possible = possible && owner[at(constraint)] == static_cast<std::int32_t>(number);
      }
    }
    if (!possible) {
      for (const std::int32_t communicator : team.communicators) {
        team_of_[at(communicator)] = -1;
      }
    }
  }
  team_at_.resize(owner.size());
  std::ranges::transform(owner, team_at_.begin(),
                         [](std::int32_t team) { return std::max(team, -1); });
  for (std::size_t c = 0; c < fold.communicators.size(); ++c) {
    const bool meets =
        std::ranges::any_of(runs.constraints(static_cast<std::int32_t>(c)),
                            [&](std::int32_t constraint) { return team_at(constraint) >= 0; });
    meets_teams_.push_back(meets ? 1 : 0);
  }
}

const StretchTeams::Kind& StretchTeams::kind_of(std::int32_t team_index, const Stretch& stretch,
                                                const FoldedRuns& runs,
                                                std::span<const std::uint64_t> speeds,
                                                std::int32_t traced) {
  const auto [found, is_new] = known_.try_emplace({team_index, stretch.content});
  Kind& kind = found->second;
  if (!is_new) {
    return kind;
  }
  const Team& team = teams_[at(team_index)];
  std::vector<std::int64_t> key = {stretch.content, traced};
  const Program& program = work_.program(team.ranks.front());
  for (std::int32_t op = stretch.first; op <= stretch.last; ++op) {
    if (program.ops()[at(op)].comm != CommType::kNone && !stretch.is_exit(op)) {
      const std::int32_t communicator = runs.communicator_of(team.ranks.front(), op);
      if (team_of(communicator) != team_index) {
        return kind;
      }
      kind.collectives.push_back(communicator);
      key.push_back(
          static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(runs.kind(communicator))));
    }
  }
  for (const std::int32_t rank : team.ranks) {
    key.push_back(speeds.empty() ? 0 : std::bit_cast<std::int64_t>(speeds[at(rank)]));
  }
  const auto next = static_cast<std::int32_t>(kinds_.size());
  kind.number = kinds_.try_emplace(std::move(key), next).first->second;
  return kind;
}

const StretchTeams::Outcome* StretchTeams::find(std::int32_t kind, std::span<const Time> entry,
                                                Time first) {
  key_.clear();
  key_.push_back(kind);
  for (const Time each : entry) {
    key_.push_back((each - first).count_ps());
  }
  const auto found = outcomes_.find(key_);
  return found == outcomes_.end() ? nullptr : &found->second;
}

}  // namespace lockstep
