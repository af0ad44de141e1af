#include "simulator/replay/shared_step.h"

#include <utility>

namespace lockstep {

const StepPrograms& SharedStep::programs(const std::function<StepPrograms()>& make) {
  const std::lock_guard lock(mutex_);
  if (programs_ == nullptr) {
    programs_ = std::make_unique<const StepPrograms>(make());
  }
  return *programs_;
}

std::shared_ptr<const ProgramFacts> SharedStep::facts() {
  const std::lock_guard lock(mutex_);
  if (facts_ == nullptr) {
    facts_ = std::make_shared<const ProgramFacts>(programs_->work);
  }
  return facts_;
}

std::shared_ptr<const StepLayout> SharedStep::layout(
    std::int32_t phase, const std::function<std::shared_ptr<const StepLayout>()>& make) {
  Layout& known = layouts_[static_cast<std::size_t>(phase)];
  const std::lock_guard lock(known.mutex);
  if (!known.is_made) {
    known.layout = make();
    known.is_made = true;
  }
  if (++known.taken < simulations_) {
    return known.layout;
  }
  known.is_made = false;  // should somebody come again after all
  known.taken = 0;
  return std::exchange(known.layout, nullptr);
}

}  // namespace lockstep
