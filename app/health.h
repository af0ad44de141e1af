#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class HealthState {
  kGood,
  kAbsent,  ///< an optional part that is not here; all else works
  kBroken,  ///< a part that is here and does not work
};

/// "ok", "absent" or "broken".
std::string_view to_text(HealthState state);

/// One part of the installation as it is at run time.
struct HealthCheck {
  std::string_view part;
  HealthState state = HealthState::kGood;
  std::string detail;  ///< what was found
  std::string mend;    ///< what to do about it; empty where it is good
};

/// Looks at every part, in a fixed order. Starts lockstep-packet, and loads the GPU's driver
/// library if there is one; changes nothing.
std::vector<HealthCheck> examine_installation();

}  // namespace lockstep
