#include "analysis/whatif/causes.h"
#include "analysis/whatif/evidence.h"
#include "base/json.h"

namespace lockstep::whatif {
namespace {

Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json worker_json(const Causes& causes, const OpTable& table, std::size_t worker) {
  const Place place = place_of(table, worker % table.width());
  Json out = {{"rank", table.ranks[worker]},
              {"stage", worker / table.width()},
              {"dp_rank", place.dp_rank},
              {"slowdown", causes.by_worker[worker]}};
  if (table.peers() > 1) {
    out["cp_rank"] = place.cp_rank;
    out["tp_rank"] = place.tp_rank;
  }
  return out;
}

}  // namespace

std::string causes_json(const Causes& causes, const OpTable& table, const JobMeta& meta) {
  Json found = Json::array(), workers = Json::array(), remedies = Json::array(),
       steps = Json::array();
  for (const Cause& cause : causes.causes) {
    Json json = {{"cause", to_text(cause.pattern)},
                 {"confidence", cause.confidence},
                 {"evidence", cause.evidence}};
    if (!cause.ranks.empty()) {
      json["ranks"] = cause.ranks;
    }
    if (cause.factor > 0) {
      json["what"] = cause.what;
      json["factor"] = cause.factor;
    }
    found.push_back(std::move(json));
  }
  for (const std::size_t worker : causes.slowest) {
    workers.push_back(worker_json(causes, table, worker));
  }
  for (const Remedy& remedy : causes.remedies) {
    remedies.push_back({{"remedy", remedy.name},
                        {"description", remedy.description},
                        {"step_time_s", remedy.step_time_s},
                        {"saves", remedy.saves}});
  }
  for (const StepPattern& step : causes.steps) {
    steps.push_back({{"step", step.step},
                     {"slowdown", step.slowdown},
                     {"pattern", to_text(step.pattern)},
                     {"slowest_rank", table.ranks[step.worker]},
                     {"slowest_stage", step.stage}});
  }
  return lockstep::to_text(Json{{"schema", "lockstep-causes/1"},
                                {"trial_name", meta.trial_name},
                                {"slowdown", causes.slowdown},
                                {"waste", causes.waste},
                                {"straggling", causes.straggling},
                                {"causes", std::move(found)},
                                {"step_time_s", causes.workers.tori},
                                {"ideal_step_time_s", causes.workers.tideal},
                                {"slowest_workers_share", optional(causes.workers.rem)},
                                {"last_stage_share", optional(causes.stage.rem)},
                                {"sequence_length",
                                 {{"correlation", causes.sequence_length.correlation},
                                  {"shared", causes.sequence_length.shared},
                                  {"pooled_correlation", causes.sequence_length.pooled},
                                  {"forward_variation", causes.sequence_length.forward_cv}}},
                                {"slowest_workers", std::move(workers)},
                                {"workers", worker_evidence(table, causes.by_worker)},
                                {"remedies", std::move(remedies)},
                                {"steps", std::move(steps)}});
}

}  // namespace lockstep::whatif
