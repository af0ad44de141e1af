#include "planner/metis/stage_option.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/metis/space.h"

namespace lockstep::metis {

double StageOption::time(std::int64_t begin, std::int64_t end) const {
  double time = 0;
  for (const std::vector<double>& sums : prefix) {
    time =
        std::max(time, sums[static_cast<std::size_t>(end)] - sums[static_cast<std::size_t>(begin)]);
  }
  return time;
}

std::vector<StageOption> stage_options(const Problem& problem, const std::vector<Rank>& ranks,
                                       int first, std::int64_t batches) {
  std::vector<StageOption> found;
  const auto gpus = static_cast<int>(ranks.size());
  for (int size = 1; first + size <= gpus; size *= 2) {
    for (int tp = 1; tp <= std::min(size, problem.max_tp); tp *= 2) {
      const Strategy strategy{size / tp, tp};
      if (!left_out_because(problem, ranks, first, strategy, batches).empty()) {
        continue;
      }
      StageOption option{.gpus = size,
                         .strategy = strategy,
                         .prefix = {},
                         .memory = StageMemory(problem, ranks, first, size, strategy, batches)};
      for (const std::vector<double>& layers :
           group_times(problem, ranks, first, size, strategy, batches, nullptr)) {
        std::vector<double> prefix(layers.size() + 1);
        std::partial_sum(layers.begin(), layers.end(), prefix.begin() + 1);
        option.prefix.push_back(std::move(prefix));
      }
      if (!option.prefix.empty() && option.memory.known()) {
        option.sync =
            sync_ms(problem, ranks, first, size, strategy, batches, nullptr).value_or(kFar);
        option.gradient_ms_a_byte = gradient_ms_a_byte(problem, ranks, first, strategy);
        found.push_back(std::move(option));
      }
    }
  }
  return found;
}

}  // namespace lockstep::metis
