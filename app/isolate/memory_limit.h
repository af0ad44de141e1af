#pragma once

#include "base/units.h"

namespace lockstep {

/// Lets this process and its children to come write to at most so much memory of their own
/// (RLIMIT_DATA); beyond it an allocation throws std::bad_alloc. 0: no limit. Without effect under
/// the address and thread sanitizers, whose own tables are over any such limit.
void limit_own_memory(Bytes most);

}  // namespace lockstep
