#include "analysis/whatif/evidence.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "analysis/whatif/numbers.h"
#include "base/large_pages.h"
#include "base/parallel.h"
#include "trace/trace_op.h"

namespace lockstep::whatif {
namespace {

constexpr std::size_t kShown = 256;

/// Operations of one type on one stage.
struct TypeOnStage {
  TraceOp type;
  std::vector<std::size_t> nodes;
  float median_s = 0;  ///< of all its workers
};

/// By stage, the types that take time.
std::vector<std::vector<TypeOnStage>> types_by_stage(const OpTable& table) {
  std::vector<std::vector<TypeOnStage>> stages(static_cast<std::size_t>(table.stages));
  for (std::size_t node = 0; node < table.nodes.size(); ++node) {
    const OpNode& what = table.nodes[node];
    auto& types = stages[static_cast<std::size_t>(what.stage)];
    if (types.empty() || types.back().type != what.type) {
      types.push_back({what.type, {}});
    }
    types.back().nodes.push_back(node);
  }
  for_each_in_parallel(stages.size(), threads_for(table.size()), [&](std::size_t stage) {
    auto& types = stages[stage];
    for (TypeOnStage& each : types) {
      std::vector<float> all;
      reserve_large(all, each.nodes.size() * table.lanes());
      for (const std::size_t node : each.nodes) {
        const auto durations = table.duration(node);
        all.insert(all.end(), durations.begin(), durations.end());
      }
      each.median_s = upper_median(all);
    }
    std::erase_if(types, [](const TypeOnStage& each) { return each.median_s <= 0; });
  });
  return stages;
}

Json ops_of(const OpTable& table, const std::vector<TypeOnStage>& types, std::size_t lane,
            std::size_t width) {
  Json ops = Json::array();
  std::vector<float> own;
  for (const TypeOnStage& each : types) {
    own.clear();
    float longest = 0;
    std::size_t longest_step = 0;
    for (const std::size_t node : each.nodes) {
      const auto durations = table.duration(node);
      for (std::size_t step = 0; step < table.steps.size(); ++step) {
        const float duration = durations[step * width + lane];
        own.push_back(duration);
        if (duration > longest) {
          longest = duration;
          longest_step = step;
        }
      }
    }
    // Member by member: lists of initial values would copy each of thousands three times.
    Json::object_t op;
    op.reserve(6);
    op.emplace_back("type", trace_op_names()[index(each.type)]);
    op.emplace_back("count", own.size());
    op.emplace_back("median_s", upper_median(own));
    op.emplace_back("peers_median_s", each.median_s);
    op.emplace_back("longest_s", longest);
    op.emplace_back("longest_step", table.steps[longest_step]);
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace

Json worker_evidence(const OpTable& table, const std::vector<double>& by_worker) {
  const std::size_t width = table.lanes() / table.steps.size();
  const std::size_t peers = width / static_cast<std::size_t>(table.dp);
  std::vector<std::size_t> order(by_worker.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t worker) { return by_worker[worker]; });
  std::vector<char> shown(by_worker.size(), 0);
  for (std::size_t i = 0; i < std::min(kShown, order.size()); ++i) {
    shown[order[i]] = 1;
  }
  const std::vector<std::vector<TypeOnStage>> types = types_by_stage(table);
  Json workers = Json::array();
  for (std::size_t worker = 0; worker < by_worker.size(); ++worker) {
    const std::size_t stage = worker / width, lane = worker % width;
    Json json = {{"rank", table.ranks[worker]},
                 {"stage", stage},
                 {"dp_rank", lane / peers},
                 {"slowdown", by_worker[worker]}};
    if (peers > 1) {
      json["column"] = lane;
    }
    if (shown[worker] != 0) {
      json["ops"] = ops_of(table, types[stage], lane, width);
    }
    workers.push_back(std::move(json));
  }
  return workers;
}

}  // namespace lockstep::whatif
