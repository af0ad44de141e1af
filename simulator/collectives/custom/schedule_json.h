#pragma once

#include <string>
#include <string_view>

#include "simulator/collectives/schedule.h"

namespace lockstep {

/// An algorithm as JSON, "lockstep-algorithm/1" (docs/formats/algorithm.md): the slots of a
/// Schedule, without sizes. ERRORS: Error with the file and the path of the value that is wrong.
/// What is read has the right form but may not do what it says: see check_schedule().
struct NamedSchedule {
  std::string name;
  Schedule schedule;  ///< chunk_bytes 0
  friend bool operator==(const NamedSchedule&, const NamedSchedule&) = default;
};
NamedSchedule parse_schedule_json(std::string_view text, const std::string& file);

/// The other way. parse_schedule_json(to_schedule_json(x)) == x for what that returned.
std::string to_schedule_json(const NamedSchedule& named);

}  // namespace lockstep
