#include "generator/exact/groups.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/exact/nearest.h"
#include "workloads/workload.h"

namespace lockstep {
namespace {

/// One dimension of the rank grid with its degree, fastest first.
struct Dimension {
  std::string_view name;
  std::int64_t size = 1;
};
using Grid = std::vector<Dimension>;

Grid grid_of(const RankLayout& layout, bool experts) {
  Grid grid;
  for (const std::string_view name : split(layout.order, '-')) {
    std::int64_t size = 1;
    if (name == "tp") {
      size = experts ? layout.etp : layout.tp;
    } else if (name == "cp") {
      size = experts ? 1 : layout.cp;
    } else if (name == "ep") {
      size = experts ? layout.ep : 1;
    } else if (name == "dp") {
      size = experts ? layout.expert_dp() : layout.dp();
    } else {
      size = layout.pp;
    }
    grid.push_back({name, size});
  }
  return grid;
}

/// Calls f(offset) for every place of the chosen dimensions, fastest first.
template <class F>
void for_each_place(const Grid& grid, std::span<const std::string_view> names, bool chosen, F&& f) {
  std::vector<std::pair<std::int64_t, std::int64_t>> loops;  // size, stride
  std::int64_t stride = 1, count = 1;
  for (const Dimension& dimension : grid) {
    if ((std::ranges::find(names, dimension.name) != names.end()) == chosen) {
      loops.emplace_back(dimension.size, stride);
      count *= dimension.size;
    }
    stride *= dimension.size;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, offset = 0;
    for (const auto& [size, step] : loops) {
      offset += rest % size * step;
      rest /= size;
    }
    f(static_cast<std::int32_t>(offset));
  }
}

std::vector<std::vector<std::int32_t>> cut(const Grid& grid,
                                           std::initializer_list<std::string_view> dimensions) {
  const std::span names(dimensions.begin(), dimensions.size());
  std::vector<std::vector<std::int32_t>> groups;
  for_each_place(grid, names, false, [&](std::int32_t first) {
    std::vector<std::int32_t>& members = groups.emplace_back();
    for_each_place(grid, names, true,
                   [&](std::int32_t offset) { members.push_back(first + offset); });
  });
  std::ranges::sort(groups, {}, [](const auto& members) { return members.front(); });
  return groups;
}

void check_degree(std::int64_t value, std::string_view name) {
  if (value < 1 || value > kMaxGpus) {
    throw Error(fmt::format("{} is out of range", value))
        .field(name)
        .expected(fmt::format("a whole number from 1 to {}", kMaxGpus));
  }
}

/// The degree that breaks the rule by itself (the product of the others divides the GPUs), with its
/// nearest values that do; every one where there are several.
std::vector<std::pair<Dimension, std::vector<std::int64_t>>> repairs(std::int64_t gpus,
                                                                     const Grid& degrees) {
  std::vector<std::pair<Dimension, std::vector<std::int64_t>>> found;
  for (const Dimension& degree : degrees) {
    std::int64_t others = 1;
    bool fits = degree.size > 1;
    for (const Dimension& other : degrees) {
      fits = fits && (&other == &degree || !__builtin_mul_overflow(others, other.size, &others));
    }
    if (fits && gpus % others == 0) {
      found.emplace_back(degree, nearest_divisors(gpus / others, degree.size));
    }
  }
  return found;
}

void check_product(std::int64_t gpus, const Grid& degrees) {
  std::int64_t product = 1;
  std::vector<std::string> names, values, advice;
  for (const Dimension& degree : degrees) {
    names.emplace_back(degree.name);
    values.push_back(std::to_string(degree.size));
    if (__builtin_mul_overflow(product, degree.size, &product) || product > gpus) {
      product = gpus + 1;  // does not divide gpus
    }
  }
  if (gpus % product == 0) {
    return;
  }
  const auto found = repairs(gpus, degrees);
  for (const auto& [degree, nearest] : found) {
    advice.push_back(fmt::format("{} {}", degree.name, nearest_text(nearest)));
  }
  throw Error(fmt::format("{} = {} does not divide {} GPUs", fmt::join(names, " x "),
                          fmt::join(values, " x "), gpus))
      .field(fmt::format("--{}", found.empty() ? degrees.front().name : found.front().first.name))
      .expected(advice.empty() ? "degrees whose product divides the GPUs"
                               : fmt::format("{}", fmt::join(advice, ", or ")))
      .hint(product > gpus ? std::string("or more GPUs")
                           : fmt::format("{} GPUs would do too",
                                         nearest_text(nearest_multiples(gpus, product))));
}

}  // namespace

std::string_view name_of(RankGroup kind) {
  static constexpr std::array<std::string_view, kRankGroupCount> kNames{
      "tp", "cp",        "dp.plain", "dp",           "pp",    "tp.model",
      "ep", "tp.expert", "dp_ep",    "world.expert", "tp.dp", "world"};
  return kNames[static_cast<std::size_t>(kind)];
}

void check_layout(const RankLayout& layout) {
  check_degree(layout.gpus, "--gpus");
  check_degree(layout.tp, "--tp");
  check_degree(layout.cp, "--cp");
  check_degree(layout.pp, "--pp");
  check_degree(layout.ep, "--ep");
  check_degree(layout.etp, "--expert_tp");
  std::vector<std::string_view> order = split(layout.order, '-');
  const bool pp_last = !order.empty() && order.back() == "pp";
  std::ranges::sort(order);
  if (order != std::vector<std::string_view>{"cp", "dp", "ep", "pp", "tp"}) {
    throw Error(fmt::format("'{}' is no order of the parallel dimensions", printable(layout.order)))
        .field("--rank_order")
        .expected("tp, cp, ep, dp and pp, each once, joined by '-': tp-cp-ep-dp-pp");
  }
  check_product(layout.gpus, {{"tp", layout.tp}, {"cp", layout.cp}, {"pp", layout.pp}});
  check_product(layout.gpus, {{"expert_tp", layout.etp}, {"ep", layout.ep}, {"pp", layout.pp}});
  if (!pp_last && layout.pp > 1 && layout.tp * layout.cp != layout.etp * layout.ep) {
    throw Error(fmt::format("with the order {} the stages of dense layers and of experts would be "
                            "different ranks",
                            layout.order))
        .field("--rank_order")
        .expected(
            fmt::format("pp last, or expert_tp x ep = {} as tp x cp is", layout.tp * layout.cp));
  }
}

std::vector<std::vector<std::int32_t>> groups_of(const RankLayout& layout, RankGroup kind) {
  const Grid dense = grid_of(layout, false), experts = grid_of(layout, true);
  switch (kind) {
    case RankGroup::kTp:
      return cut(dense, {"tp"});
    case RankGroup::kCp:
      return cut(dense, {"cp"});
    case RankGroup::kDp:
      return cut(dense, {"dp"});
    case RankGroup::kDpCp:
      return cut(dense, {"dp", "cp"});
    case RankGroup::kPp:
      return cut(dense, {"pp"});
    case RankGroup::kModel:
      return cut(dense, {"tp", "pp"});
    case RankGroup::kEp:
      return cut(experts, {"ep"});
    case RankGroup::kExpertTp:
      return cut(experts, {"tp"});
    case RankGroup::kExpertDp:
      return cut(experts, {"dp"});
    case RankGroup::kExpertModel:
      return cut(experts, {"tp", "ep", "pp"});
    case RankGroup::kTpDpCp:
      return cut(dense, {"tp", "dp", "cp"});
    case RankGroup::kWorld:
      break;
  }
  return cut(dense, {"tp", "cp", "ep", "dp", "pp"});
}

std::vector<std::vector<std::int32_t>> embedding_groups(
    std::vector<std::vector<std::int32_t>> pipelines) {
  std::erase_if(pipelines, [](const auto& members) { return members.size() < 2; });
  for (std::vector<std::int32_t>& members : pipelines) {
    members = {members.front(), members.back()};
  }
  return pipelines;
}

std::vector<std::int32_t> stage_of_ranks(const RankLayout& layout) {
  std::vector<std::int32_t> stage(static_cast<std::size_t>(layout.gpus));
  for (const std::vector<std::int32_t>& members : groups_of(layout, RankGroup::kPp)) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      stage[static_cast<std::size_t>(members[i])] = static_cast<std::int32_t>(i);
    }
  }
  return stage;
}

}  // namespace lockstep
