#include "analysis/whatif/whatif.h"

namespace lockstep::whatif {

Decompositions take_apart(const Scene& scene) {
  return {blocking_by_dp_rank(scene), blocking_by_stage(scene), blocking_by_optype(scene)};
}

Result make_result(const Scene& scene, const JobMeta& meta, const Decompositions& blocking,
                   const ResultOptions& options) {
  Result r{.meta = meta,
           .steps = scene.table.steps,
           .step_t_base = scene.traced.step_s,
           .step_t_nodelay = scene.model.nodelay.span,
           .step_t_noblk = scene.model.ideal.span,
           .launch_slowdown = launch_slowdown(scene),
           .blocking_slowdown = blocking_slowdown(scene),
           .blocking_step_slowdown = {},
           .launch_step_slowdown = {},
           .blocking = {},
           .launch = {},
           .picked_steps = options.picked_steps};
  for (std::size_t s = 0; s < r.steps.size(); ++s) {
    r.blocking_step_slowdown.push_back(scene.model.nodelay.span[s] /
                                       scene.model.ideal.optimizer[s]);
    r.launch_step_slowdown.push_back(static_cast<double>(scene.traced.step_s[s]) /
                                     scene.model.nodelay.optimizer[s]);
  }
  if (!(r.blocking_slowdown < options.decompose_threshold)) {
    r.blocking = blocking;
  }
  if (!(r.launch_slowdown < options.decompose_threshold)) {
    r.launch = {launch_by_dp_rank(scene), launch_by_stage(scene), launch_by_optype(scene)};
  }
  return r;
}

}  // namespace lockstep::whatif
