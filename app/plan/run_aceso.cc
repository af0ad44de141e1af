#include <algorithm>

#include <fmt/format.h>

#include "app/plan/aceso_report.h"
#include "app/plan/plan_options.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/warnings.h"
#include "planner/aceso/cost.h"

namespace lockstep {
namespace {

using namespace aceso;

Cluster cluster_of(const AcesoOptions& options) {
  return {.nodes = options.nodes,
          .gpus_per_node = options.gpus_per_node,
          .memory_limit_mb = options.memory_limit_mb};
}

Flavour flavour_of(const AcesoOptions& options) {
  return options.cost == "fixed" ? Flavour::kFixed : Flavour::kStrict;
}

/// What the price of a given plan leaves out or takes at face value.
Warnings oddities(const Plan& plan, const Database& database, const Cluster& cluster) {
  Warnings warnings;
  if (plan.global_batch % plan.microbatch != 0) {
    warnings.add(fmt::format("{} samples are no whole number of microbatches of {}: {} are dropped",
                             plan.global_batch, plan.microbatch,
                             plan.global_batch % plan.microbatch));
  }
  int gpus = 0;
  std::size_t op = 0;
  for (const Stage& stage : plan.stages) {
    gpus += stage.gpus;
    for (const OpPlace& place : stage.places) {
      if (plan.microbatch % place.dp != 0) {
        warnings.add(fmt::format("a microbatch of {} over {} ranks drops samples", plan.microbatch,
                                 place.dp));
      }
      const std::int64_t share = plan.microbatch / place.dp;
      if (!database.has(share, place.tp, place.algorithm)) {
        warnings.add(fmt::format(
            "no profile of {} samples a rank at tp {}, algorithm {}: such ops count as 1 s each",
            share, place.tp, place.algorithm));
      }
      ++op;
    }
  }
  if (gpus != cluster.gpus()) {
    warnings.add(fmt::format("the plan uses {} GPUs; the cluster has {}", gpus, cluster.gpus()));
  }
  return warnings;
}

void print(const Warnings& warnings) {
  for (const Warnings::Entry& entry : warnings.entries()) {
    fmt::print(stderr, "lockstep: warning: {}{}\n", entry.text,
               entry.count == 1 ? "" : fmt::format(" ({} times)", entry.count));
  }
}

/// The microbatches a rank may run in the plan, and the whole one.
std::vector<std::int64_t> microbatches_of(const Plan& plan) {
  std::vector<std::int64_t> all = {plan.microbatch};
  for (const Stage& stage : plan.stages) {
    for (const OpPlace& place : stage.places) {
      all.push_back(plan.microbatch / place.dp);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  all.erase(std::remove(all.begin(), all.end(), 0), all.end());
  return all;
}

ExitCode price(const AcesoOptions& options, const Model& model) {
  const Cluster cluster = cluster_of(options);
  const FileText text(options.price, 1 << 28);
  const Plan plan = parse_plan(text.view(), options.price, model);
  int tp = cluster.gpus_per_node;
  for (const Stage& stage : plan.stages) {
    tp = std::max(tp, stage.gpus);
  }
  const Database database = read_database(options.profiles, model, microbatches_of(plan), tp);
  check_ops(plan, options.price, model, static_cast<std::int64_t>(database.ops.size()));
  const Warnings warnings = oddities(plan, database, cluster);
  const PlanPrice cost = price_plan(plan, database, model, cluster, flavour_of(options));
  if (options.json) {
    Json json = {{"schema", "lockstep-plan-price/1"},
                 {"model", model.name},
                 {"size", model.size},
                 {"cost", options.cost},
                 {"plan", options.price}};
    json.update(aceso_plan_json(plan, cost, cluster));
    Json list = Json::array();
    for (const Warnings::Entry& entry : warnings.entries()) {
      list.push_back(entry.text);
    }
    json["warnings"] = std::move(list);
    write_file("-", to_text(json));
  } else {
    print(warnings);
    write_file("-", fmt::format("{} {}: ", model.name, model.size) +
                        aceso_plan_table(plan, cost, cluster));
  }
  return ExitCode::kDone;
}

}  // namespace

ExitCode run_aceso(const AcesoOptions& options) {
  const Model model = find_model(options.model, options.size, options.layers);
  return price(options, model);
}

}  // namespace lockstep
