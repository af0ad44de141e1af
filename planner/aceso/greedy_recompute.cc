#include "planner/aceso/greedy_recompute.h"

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep::aceso {
namespace {

/// The instances of one op name in a stage.
struct Group {
  const std::string* name = nullptr;
  std::vector<std::size_t> instances;
  std::vector<double> activations_mb;  ///< with the microbatches in flight
  double total_mb = 0;
  bool used = false;
};

std::vector<Group> groups_of(const Stage& stage, std::int64_t first_op, std::int64_t behind,
                             std::int64_t microbatch, const Database& database) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < stage.places.size(); ++i) {
    const int row = database.ops[static_cast<std::size_t>(first_op) + i];
    const std::string& name = database.names[static_cast<std::size_t>(row)];
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& one) { return *one.name == name; });
    if (group == groups.end()) {
      const OpTraits& traits = database.traits[static_cast<std::size_t>(row)];
      groups.push_back({.name = &name, .used = traits.greedy_skips || !traits.recomputable});
      group = std::prev(groups.end());
    }
    const OpPlace& place = stage.places[i];
    const double activations =
        database.cost(row, microbatch / place.dp, place.tp, place.algorithm).activations_mb *
        static_cast<double>(behind + 1);
    group->instances.push_back(i);
    group->activations_mb.push_back(activations);
    group->total_mb += activations;
  }
  return groups;
}

Group* largest(std::vector<Group>& groups) {
  Group* best = nullptr;
  for (Group& group : groups) {
    if (!group.used && (best == nullptr || group.total_mb > best->total_mb)) {
      best = &group;
    }
  }
  return best;
}

}  // namespace

void greedy_recompute(Stage& stage, std::int64_t first_op, std::int64_t behind,
                      std::int64_t microbatch, const Database& database, const Model& model,
                      double memory_limit_mb, double spare_mb) {
  std::fill(stage.recompute.begin(), stage.recompute.end(), char{0});
  std::vector<Group> groups = groups_of(stage, first_op, behind, microbatch, database);
  double need = stage_memory(stage, first_op, behind, microbatch, microbatch, database, model,
                             Flavour::kStrict)
                    .total_mb +
                spare_mb - memory_limit_mb;
  RecomputeEffect before;
  while (need > 0) {
    Group* group = largest(groups);
    if (group == nullptr || group->instances.front() + 1 == stage.places.size()) {
      return;
    }
    const int next_row =
        database.ops[static_cast<std::size_t>(first_op) + group->instances.front() + 1];
    const std::string& next = database.names[static_cast<std::size_t>(next_row)];
    group->used = true;
    for (Group& other : groups) {
      other.used = other.used || *other.name == next;
    }
    double sum = 0;
    for (std::size_t n = 0; n < group->instances.size(); ++n) {
      if (!(group->total_mb < need) && sum > need) {
        break;
      }
      sum += group->activations_mb[n];
      const std::size_t i = group->instances[n];
      stage.recompute[i] = 1;
      if (i + 1 < stage.recompute.size()) {
        stage.recompute[i + 1] = 1;
      }
    }
    const RecomputeEffect after = recompute_effect(stage, first_op, microbatch, database);
    need += (before.saved_mb - after.saved_mb) * static_cast<double>(behind + 1) +
            (after.peak_mb - before.peak_mb);
    before = after;
  }
}

}  // namespace lockstep::aceso
