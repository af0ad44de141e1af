#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/custom/msccl_xml.h"
#include "simulator/collectives/custom/schedule_json.h"

namespace lockstep {

/// An algorithm that the user wrote: MSCCL's XML or our JSON (docs/formats/algorithm.md).
struct UserAlgorithm {
  std::string file;
  std::variant<MscclProgram, NamedSchedule> what;

  const std::string& name() const;
  CommType op() const;
  /// The schedule for a request, proved right by symbolic execution. ERRORS: Error with the file
  /// (and line) when it is not, is for another operation or another number of ranks.
  Schedule build(const CollectiveRequest& request, const GroupShape& shape) const;
};

/// Told apart by the first character that is no blank: '<' or '{'. ERRORS: as the two readers.
UserAlgorithm read_algorithm_file(const std::string& path);
UserAlgorithm parse_algorithm(std::string_view text, const std::string& file);

}  // namespace lockstep
