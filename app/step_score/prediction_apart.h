#pragma once

#include <string>

#include "app/isolate/nursery.h"
#include "app/step_score/score_steps.h"
#include "base/units.h"

namespace lockstep {

/// predict() in a process of its own, which ends when a row has had its time: the row's `failure`
/// then says so, and the rest of the table goes on.
class PredictionApart {
 public:
  /// `launch`: as --host-launch takes it, or empty. `limit`: of the wall clock, above 0.
  /// Construct it before the process starts threads.
  PredictionApart(std::string folder, std::string launch, Time limit);

  ScoredStep predict(const PublishedStep& step);

 private:
  std::string folder_, launch_;
  Time limit_;
  Nursery nursery_;
};

}  // namespace lockstep
