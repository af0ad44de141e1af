#include "simulator/replay/parallel_groups.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

using Members = std::vector<std::vector<std::int32_t>>;

/// All ranks cut into groups of `size` ranks `stride` apart inside blocks of size * stride.
CommFamily strided(GroupKind kind, std::int64_t ranks, std::int64_t size, std::int64_t stride) {
  Members members;
  members.reserve(static_cast<std::size_t>(ranks / size));
  for (std::int64_t block = 0; block < ranks; block += size * stride) {
    for (std::int64_t first = block; first < block + stride; ++first) {
      std::vector<std::int32_t>& group = members.emplace_back();
      group.reserve(static_cast<std::size_t>(size));
      for (std::int64_t i = 0; i < size; ++i) {
        group.push_back(static_cast<std::int32_t>(first + i * stride));
      }
    }
  }
  return {kind, std::move(members), static_cast<std::int32_t>(ranks)};
}

}  // namespace

std::vector<CommFamily> parallel_groups(const Parallelism& parallel) {
  const std::int64_t n = parallel.gpus, t = parallel.tp, p = parallel.pp, e = parallel.ep;
  if (t > n || p > n || n % (t * p) != 0) {
    throw Error(fmt::format("tp {} times pp {} does not divide {} GPUs", t, p, n))
        .expected("a number of GPUs that is a multiple of tp * pp");
  }
  const std::int64_t d = n / (t * p);
  const bool over_tp = d % e != 0;  // experts on the TP ranks too
  if (over_tp && t * d % e != 0) {
    std::int64_t lower = std::min(e, d);
    while (d % lower != 0) {
      --lower;
    }
    throw Error(fmt::format("ep {} divides neither the {} data-parallel ranks ({} GPUs / tp {} / "
                            "pp {}) nor the {} ranks of a stage",
                            e, d, n, t, p, t * d))
        .hint(fmt::format("ep {} would fit", lower));
  }
  const std::int64_t ep_stride = over_tp ? 1 : t;
  std::vector<CommFamily> families;
  families.push_back(strided(GroupKind::kTp, n, t, 1));
  families.push_back(strided(GroupKind::kDp, n, d, t));
  families.push_back(strided(GroupKind::kEp, n, e, ep_stride));
  families.push_back(strided(GroupKind::kDpEp, n, (over_tp ? t * d : d) / e, ep_stride * e));
  families.push_back(strided(GroupKind::kPp, n, p, n / p));
  families.push_back(strided(GroupKind::kCp, n, 1, 1));
  families.push_back(strided(GroupKind::kWorld, n, n, 1));
  return families;
}

}  // namespace lockstep
