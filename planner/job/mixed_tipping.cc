#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/job/mixed_bound.h"
#include "planner/job/mixed_search.h"

namespace lockstep {

std::vector<MixedTipping> mixed_tipping(const MixedProblem& problem,
                                        const MixedSearchResult& result) {
  struct Rate {
    std::string what;
    double Speeds::*speed = nullptr;
    std::size_t pool = 0;
  };
  std::vector<Rate> rates = {{"NVLink bandwidth", &Speeds::nvlink, 0},
                             {"NIC bandwidth", &Speeds::nic, 0},
                             {"latency", &Speeds::latency, 0}};
  for (std::size_t p = 0; p < problem.pools.size(); ++p) {
    rates.push_back({problem.pools[p].type + "'s speed", nullptr, p});
  }
  std::vector<MixedJob> jobs;
  for (const MixedPlan& plan : result.families) {
    jobs.push_back(with_model(problem.base, plan.job));
  }
  const auto values = [&](const Rate& rate, double factor) {
    Speeds speeds;
    std::vector<double> compute(problem.pools.size(), 1);
    (rate.speed == nullptr ? compute[rate.pool] : speeds.*rate.speed) = factor;
    MixedBound bound(*problem.topology, problem.pools, problem.operator_times(), speeds, compute);
    std::vector<double> all;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      MixedPlan plan = result.families[i];
      const double above = plan.step_s() / plan.floor.step_s;
      plan.priced = false;
      plan.floor.step_s = bound.of(jobs[i]).step_s * above;
      all.push_back(objective_value(problem, plan));
    }
    return all;
  };
  std::vector<MixedTipping> points;
  for (const Rate& rate : rates) {
    MixedTipping point{rate.what, 0, {}, {}};
    for (int step = 1; step <= 12 && point.factor == 0; ++step) {
      for (const double factor : {std::exp2(-0.25 * step), std::exp2(0.25 * step)}) {
        const std::vector<double> all = values(rate, factor);
        const auto least = static_cast<std::size_t>(std::ranges::min_element(all) - all.begin());
        if (least != 0 && all[least] < all[0] && point.factor == 0) {
          point.factor = factor;
          point.family = result.families[least].family;
          point.instead = plan_text(result.families[least]);
        }
      }
    }
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace lockstep
