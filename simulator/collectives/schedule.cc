#include "simulator/collectives/schedule.h"

namespace lockstep {

void Schedule::add(const Transfer& transfer, std::span<const std::int32_t> waits_for) {
  if (dependency_begin.empty()) {
    dependency_begin.push_back(0);
  }
  transfers.push_back(transfer);
  dependency.insert(dependency.end(), waits_for.begin(), waits_for.end());
  dependency_begin.push_back(static_cast<std::int32_t>(dependency.size()));
}

}  // namespace lockstep
