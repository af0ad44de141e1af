#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "simulator/replay/folded_runs.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/stretch.h"

namespace lockstep {

/// The classes of a folded step that go through stretches together (the members of a group of the
/// stretches' family), and what stretches have done: how long after the first place entered each
/// place is through, by what decides it.
class StretchTeams {
 public:
  struct Team {
    std::vector<std::int32_t> ranks;          ///< representatives, by place
    std::vector<std::int32_t> communicators;  ///< all of the family on these classes
    Time rest;                                ///< by then nothing told is on the wire
    std::vector<std::int32_t> under_way;      ///< its stretches, for the replay
  };
  /// Times count from the first entry.
  struct Outcome {
    std::vector<Time> finish;      ///< by place
    Time rest;                     ///< nothing is on the wire any more
    std::vector<Time> exits;       ///< by place, and of that by exit: ready
    std::vector<OpTiming> timing;  ///< of the traced place's operations
  };

  /// Nobody is in a team whose ports another one uses too, or whose ranks run several programs.
  StretchTeams(const RankPrograms& work, const StepFold& fold, const FoldedRuns& runs,
               const Stretches& stretches);

  std::vector<Team>& teams() { return teams_; }
  /// The team of a communicator; -1 where it has none.
  std::int32_t team_of(std::int32_t communicator) const {
    return communicator < 0 ? -1 : team_of_[static_cast<std::size_t>(communicator)];
  }
  /// The team on whose ports a constraint of the fold is; -1 where it is nobody's.
  std::int32_t team_at(std::int32_t constraint) const {
    return team_at_[static_cast<std::size_t>(constraint)];
  }
  /// Whether some of a communicator's constraints are on a team's ports.
  bool meets_teams(std::int32_t communicator) const {
    return meets_teams_[static_cast<std::size_t>(communicator)] != 0;
  }
  /// A stretch as a team runs it.
  struct Kind {
    std::int32_t number = -1;  ///< of stretch, team's shape and speeds; -1: not all is the team's
    std::vector<std::int32_t> collectives;  ///< their communicators, in their order
  };
  /// Stays where it is. `traced`: the place whose operations are recorded, or -1.
  const Kind& kind_of(std::int32_t team, const Stretch& stretch, const FoldedRuns& runs,
                      std::span<const std::uint64_t> speeds, std::int32_t traced);
  /// What it did with entries at these times after the first; nullptr where that is not known.
  const Outcome* find(std::int32_t kind, std::span<const Time> entry, Time first);
  /// To be filled; stays where it is. PRECONDITION: find() has just found nothing.
  Outcome* add() { return &outcomes_[key_]; }

 private:
  struct Hash {
    std::size_t operator()(const std::vector<std::int64_t>& key) const noexcept;
  };

  const RankPrograms& work_;
  std::vector<Team> teams_;
  std::vector<std::int32_t> team_of_;                            // by communicator
  std::vector<std::int32_t> team_at_;                            // by constraint
  std::vector<char> meets_teams_;                                // by communicator
  std::map<std::pair<std::int32_t, std::int32_t>, Kind> known_;  // by team and content
  std::map<std::vector<std::int64_t>, std::int32_t> kinds_;
  std::unordered_map<std::vector<std::int64_t>, Outcome, Hash> outcomes_;  // never iterated
  std::vector<std::int64_t> key_;
};

}  // namespace lockstep
