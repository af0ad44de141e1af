#include "app/step_score/prediction_apart.h"

#include <utility>

#include <fmt/format.h>

#include "base/json.h"

namespace lockstep {

PredictionApart::PredictionApart(std::string folder, std::string launch, Time limit)
    : folder_(std::move(folder)), launch_(std::move(launch)), limit_(limit) {}

ScoredStep PredictionApart::predict(const PublishedStep& step) {
  IsolatedTask task;
  task.arguments = {"score-steps", folder_, "--source",
                    step.source,   "--row", fmt::format("{}", step.row),
                    "--rows",      "--json"};
  if (!launch_.empty()) {
    task.arguments.insert(task.arguments.end(), {"--host-launch", launch_});
  }
  task.time_limit = limit_;
  const IsolatedResult result = nursery_.run(task);
  ScoredStep scored{&step, 0, {}};
  if (result.ending == Ending::kTimedOut) {
    scored.failure = fmt::format("takes longer than {:g} s", limit_.seconds());
  } else if (result.ending != Ending::kDone) {
    scored.failure = result.reason;
  } else {
    const Json document = Json::parse(result.out);
    const Json& row = document["rows"].at(0);
    scored.predicted_s = row.value("predicted_s", 0.0);
    scored.failure = row.value("failure", std::string());
  }
  return scored;
}

}  // namespace lockstep
