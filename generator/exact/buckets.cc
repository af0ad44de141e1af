#include "generator/exact/buckets.h"

#include <algorithm>
#include <limits>

namespace lockstep {

std::vector<GradientBucket> make_buckets(std::span<const std::int64_t> parameters,
                                         std::int64_t limit) {
  std::vector<GradientBucket> buckets;
  GradientBucket open;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == 0) {
      continue;
    }
    open.first = open.parameters == 0 ? i : open.first;
    open.last = i;
    open.parameters += parameters[i];
    if (open.parameters >= limit) {
      buckets.push_back(open);
      open = {};
    }
  }
  if (open.parameters > 0) {
    buckets.push_back(open);
  }
  return buckets;
}

std::int64_t bucket_limit(const Job& job, bool first) {
  if (!job.overlap_gradients || (!first && job.sharding != Sharding::kZero2)) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return job.gradient_bucket > 0
             ? job.gradient_bucket
             : std::max<std::int64_t>(40'000'000, 1'000'000 * job.dp() * job.cp);
}

}  // namespace lockstep
