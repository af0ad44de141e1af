#pragma once

#include <cstddef>
#include <functional>

namespace lockstep {

/// Calls f(0) … f(count - 1), taken in this order by at most `threads` threads, the calling one
/// among them; 0: as many as there are cores. What f does for one number must not depend on
/// another's. Where calls throw, the others are made all the same, and the error of the lowest
/// number is thrown again. PRECONDITION: threads >= 0.
void for_each_in_parallel(std::size_t count, int threads,
                          const std::function<void(std::size_t)>& f);

}  // namespace lockstep
