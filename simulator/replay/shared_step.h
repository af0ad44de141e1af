#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "simulator/replay/step_layout.h"
#include "simulator/replay/step_programs.h"

namespace lockstep {

/// What simulations of one step on one network have in common that differ in stragglers and draws
/// alone: the compiled programs, and how the connections lie on the network where links stay as
/// they are. Whoever asks first makes it, on any thread; others wait for that. Nothing of it hangs
/// on who is slow, so results are those of a simulation alone.
///
/// Memory: the layouts, 200 B a connection, until as many simulations have taken them as there are.
class SharedStep {
 public:
  explicit SharedStep(std::size_t simulations) : simulations_(simulations) {}

  const StepPrograms& programs(const std::function<StepPrograms()>& make);
  std::shared_ptr<const ProgramFacts> facts();  ///< of the programs, which are there
  /// Nothing where the step cannot be folded.
  std::shared_ptr<const StepLayout> layout(
      std::int32_t phase, const std::function<std::shared_ptr<const StepLayout>()>& make);

 private:
  struct Layout {
    std::mutex mutex;
    bool is_made = false;
    std::size_t taken = 0;
    std::shared_ptr<const StepLayout> layout;
  };

  std::size_t simulations_;
  std::mutex mutex_;
  std::unique_ptr<const StepPrograms> programs_;
  std::shared_ptr<const ProgramFacts> facts_;
  std::array<Layout, 2> layouts_;  // by phase
};

}  // namespace lockstep
