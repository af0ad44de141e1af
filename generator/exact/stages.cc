#include "generator/exact/stages.h"

#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/nearest.h"
#include "workloads/workload.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxLayers = 1'000'000;

void check_range(std::int64_t value, std::int64_t low, std::int64_t high, std::string_view field) {
  if (value < low || value > high) {
    throw Error(fmt::format("{} is out of range", value))
        .field(field)
        .expected(fmt::format("a whole number from {} to {}", low, high));
  }
}

/// Layers of each stage where those of the first or the last are given.
std::vector<std::int64_t> given_counts(const StageCut& cut) {
  const std::string_view field =
      cut.first_layers > 0 ? "--first_stage_layers" : "--last_stage_layers";
  const std::int64_t others =
      cut.pp - (cut.first_layers > 0 ? 1 : 0) - (cut.last_layers > 0 ? 1 : 0);
  const std::int64_t rest = cut.layers - cut.first_layers - cut.last_layers;
  if (others < 0 || (others == 0 && rest != 0)) {
    throw Error(fmt::format("the counts given are of {} layers on {} stages, the model has {}",
                            cut.first_layers + cut.last_layers, cut.pp, cut.layers))
        .field(field)
        .expected("counts that leave the layers of the other stages");
  }
  if (others > 0 && (rest < others * cut.vpp || rest % (others * cut.vpp) != 0)) {
    const std::int64_t unit = others * cut.vpp;
    throw Error(fmt::format("{} layers are left for {} stages of {} chunks", rest, others, cut.vpp))
        .field(field)
        .expected(fmt::format("the rest to be a multiple of {}", unit))
        .hint(rest < unit ? "give the first or last stage fewer layers"
                          : fmt::format("a rest of {} would do",
                                        nearest_text(nearest_multiples(rest, unit))));
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(cut.pp),
                                   others > 0 ? rest / others : 0);
  counts.front() = cut.first_layers > 0 ? cut.first_layers : counts.front();
  counts.back() = cut.last_layers > 0 ? cut.last_layers : counts.back();
  for (const std::int64_t count : {counts.front(), counts.back()}) {
    if (count % cut.vpp != 0) {
      throw Error(fmt::format("{} layers of a stage do not divide into {} chunks", count, cut.vpp))
          .field(field)
          .expected(fmt::format("{} layers", nearest_text(nearest_multiples(count, cut.vpp))));
    }
  }
  return counts;
}

void check_counts(const StageCut& cut) {
  if (cut.first_layers > 0 || cut.last_layers > 0) {
    throw Error("the layers of every stage are given, and those of the first or last once more")
        .field("--stage_layers")
        .expected("--stage_layers alone");
  }
  if (std::ssize(cut.counts) != cut.pp * cut.vpp) {
    throw Error(fmt::format("{} counts of layers for {} stages of {} chunks", cut.counts.size(),
                            cut.pp, cut.vpp))
        .field("--stage_layers")
        .expected(fmt::format("{} counts", cut.pp * cut.vpp));
  }
  std::int64_t sum = 0;
  for (std::size_t v = 0; v < cut.counts.size(); ++v) {
    const bool may_be_empty = cut.counts.size() > 1 && (v == 0 || v + 1 == cut.counts.size());
    check_range(cut.counts[v], may_be_empty ? 0 : 1, cut.layers, "--stage_layers");
    sum += cut.counts[v];
  }
  if (sum != cut.layers) {
    throw Error(fmt::format("the counts add up to {} layers, the model has {}", sum, cut.layers))
        .field("--stage_layers");
  }
}

/// Layers of each virtual stage.
std::vector<std::int64_t> virtual_counts(const StageCut& cut) {
  if (!cut.counts.empty()) {
    check_counts(cut);
    return cut.counts;
  }
  const std::int64_t stages = cut.pp * cut.vpp;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages));
  if (cut.first_layers > 0 || cut.last_layers > 0) {
    const std::vector<std::int64_t> given = given_counts(cut);
    for (std::int64_t v = 0; v < stages; ++v) {
      counts[static_cast<std::size_t>(v)] = given[static_cast<std::size_t>(v % cut.pp)] / cut.vpp;
    }
    return counts;
  }
  std::int64_t remainder = cut.layers % stages;
  counts.assign(counts.size(), cut.layers / stages);
  for (std::int64_t v = stages - 2; v >= 1 && remainder > 0; --v, --remainder) {
    ++counts[static_cast<std::size_t>(v)];
  }
  if (remainder > 0) {  // stages - 1 at most, so that the last gets none
    ++counts.front();
  }
  return counts;
}

}  // namespace

std::vector<std::vector<ModelChunk>> cut_into_stages(const StageCut& cut) {
  check_range(cut.layers, 1, kMaxLayers, "layers");
  check_range(cut.pp, 1, kMaxGpus, "--pp");
  check_range(cut.vpp, 1, kMaxLayers, "--vpp");
  check_range(cut.first_layers, 0, cut.layers, "--first_stage_layers");
  check_range(cut.last_layers, 0, cut.layers, "--last_stage_layers");
  if (cut.counts.empty() && (cut.pp > cut.layers || cut.vpp > cut.layers / cut.pp)) {
    throw Error(fmt::format("{} layers cannot be cut into {} stages of {} chunks", cut.layers,
                            cut.pp, cut.vpp))
        .field(cut.pp > cut.layers ? "--pp" : "--vpp")
        .expected(cut.pp > cut.layers ? fmt::format("at most {} stages", cut.layers)
                                      : fmt::format("at most {} chunks", cut.layers / cut.pp));
  }
  const std::vector<std::int64_t> counts = virtual_counts(cut);
  std::vector<std::vector<ModelChunk>> stages(static_cast<std::size_t>(cut.pp));
  std::int64_t first = 0;
  for (std::size_t v = 0; v < counts.size(); ++v) {
    stages[v % stages.size()].push_back({first, counts[v], v == 0, v + 1 == counts.size()});
    first += counts[v];
  }
  return stages;
}

}  // namespace lockstep
