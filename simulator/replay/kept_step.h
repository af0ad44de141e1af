#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/collectives/choose.h"
#include "simulator/replay/program_period.h"
#include "simulator/replay/session_store.h"
#include "simulator/replay/step_fold.h"
#include "simulator/replay/step_programs.h"
#include "simulator/replay/stretch.h"
#include "simulator/replay/symmetry.h"

namespace lockstep {

/// What a step leaves behind for further simulations of it in which computations, links or
/// latencies are faster or slower, and nothing else is different: the compiled programs, the folds
/// of a network that has not changed, the partitions that a changed one is tried with first, and
/// what communicators have done. All of it is used only where it is exact, so the results are those
/// of a simulation alone.
///
/// Memory: the folds (150 B a connection each), at most kMostFolds pairs of them, and the
/// sessions'.
struct KeptStep {
  /// Which ranks are told apart by how fast they compute: their colours, numbered as they appear.
  using Pattern = std::vector<std::int32_t>;
  template <class T>
  using Phases = std::array<T, 2>;
  static constexpr std::size_t kMostFolds = 4;

  /// Names rates of links, latencies and everything else that folds hang on, but for the pattern.
  std::string network;
  std::optional<std::string> home;  ///< the first network, to which one returns: its folds go last
  std::map<std::pair<std::string, Pattern>, Phases<std::shared_ptr<StepFold>>> folds;
  std::map<Pattern, Phases<std::optional<Partition>>> partitions;
  SessionStore sessions;
  /// Names how fast computations are; equal ones are equal under each name.
  std::string computations;
  std::optional<StepPrograms> programs;  ///< with the computations named next
  std::string programs_for;
  // Of the programs, where they were needed.
  std::shared_ptr<const ProgramFacts> facts;
  std::shared_ptr<const Stretches> stretches;
  std::shared_ptr<const std::vector<ProgramPeriod>> periods;
  std::vector<std::int32_t> leads;  ///< see ReplayRun::lead_of()
  ScheduleCache schedules;          ///< for the source of schedules

  /// After the programs have been compiled anew.
  void forget_programs() {
    facts.reset();
    stretches.reset();
    periods.reset();
    leads.clear();
  }

  /// Makes room, before a simulation.
  void trim() {
    if (!home) {
      home = network;
    }
    if (folds.size() >= kMostFolds) {
      std::erase_if(folds, [this](const auto& fold) { return fold.first.first != *home; });
    }
    if (folds.size() >= kMostFolds) {
      folds.clear();
    }
    if (partitions.size() >= kMostFolds) {
      partitions.clear();
    }
    if (sessions.half_full()) {
      sessions.clear();
    }
  }
};

}  // namespace lockstep
