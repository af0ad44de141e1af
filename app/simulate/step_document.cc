#include "app/simulate/step_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/simulate/job_figures.h"
#include "report/detail_json.h"

namespace lockstep {

void label_step(const SimulateOptions& options, StepResult& result) {
  result.workload =
      options.workload.empty() ? fmt::format("{}", fmt::join(options.job, " ")) : options.workload;
  result.topology = options.topology;
  result.engine = options.engine;
  result.semantics = options.semantics;
  result.flavour = options.flavour;
}

Json more_of_step(const SimulateOptions& options, const StepResult& result, const ExactJob* job) {
  Json more = Json::object();
  if (job != nullptr) {
    more["parallel"] = parallel_json(job->job);
    more["memory"] = memory_json(*job);
    for (const MemoryTimeline& each : result.memory) {
      more["memory"]["over_time"].push_back({{"rank", each.rank},
                                             {"stage", each.stage},
                                             {"peak_bytes", each.peak.count()},
                                             {"peak_at_s", each.peak_at.seconds()}});
    }
    more["headline"] = headline_json(*job, result.mean_step(), options.gpu_hour_price);
  }
  if (options.detail != nullptr && job != nullptr) {
    more["roofline"] = roofline_json(*job);
  }
  if (options.detail != nullptr && !options.detail->classes.empty()) {
    more["detail"] = detail_json(*options.detail, result.jobs);
  }
  return more;
}

}  // namespace lockstep
