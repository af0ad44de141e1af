#pragma once

#include <vector>

#include "generator/count.h"

namespace lockstep {

/// begin, 2 begin, 4 begin … up to end. ERRORS: begin is 0 (the series would not end).
std::vector<Count> message_sizes(Count begin, Count end);

}  // namespace lockstep
