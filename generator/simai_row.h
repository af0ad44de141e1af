#pragma once

#include <string>
#include <string_view>

#include "generator/count.h"

namespace lockstep {

/// One phase of a line of SimAI's workload text: nanoseconds, communication, bytes.
struct SimaiPhase {
  Count time = 1;
  std::string_view comm = "NONE";
  Count bytes = 0;
};

/// One line of SimAI's workload text, as AICB writes it: twelve columns, tabs between.
struct SimaiRow {
  std::string_view name;
  SimaiPhase forward, input_grad, weight_grad;
  Count update = 100;
};

void append(std::string& text, const SimaiRow& line);
std::string to_text(const SimaiRow& line);

inline constexpr std::string_view kSimaiPolicy = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";

}  // namespace lockstep
