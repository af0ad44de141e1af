#include "planner/metis/uniform.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep::metis {
namespace {

const Profile& profile_of(const Problem& problem, const UniformPlan& uniform) {
  const std::string& type = problem.nodes.front().type;
  const Profile* profile = problem.profiles.find(type, uniform.tp, uniform.mbs);
  if (profile == nullptr) {
    throw Error("no such profile")
        .at(fmt::format("DeviceType.{}_tp{}_bs{}.json", type, uniform.tp, uniform.mbs));
  }
  return *profile;
}

/// The sums of a list over the layers of each stage.
std::vector<double> by_stage(const std::vector<double>& layers, const Plan& plan) {
  std::vector<double> sums;
  for (std::size_t s = 0; s + 1 < plan.partition.size(); ++s) {
    double sum = 0;
    for (std::int64_t l = plan.partition[s]; l < plan.partition[s + 1]; ++l) {
      sum += layers[static_cast<std::size_t>(l)];
    }
    sums.push_back(sum);
  }
  return sums;
}

}  // namespace

Plan plan_of(const Problem& problem, const UniformPlan& uniform) {
  if (problem.types().size() > 1) {
    throw Error("Metis's model of uniform plans is of one type of GPU")
        .field("instance_type")
        .expected("the same of all hosts")
        .hint("a plan with device_groups has several");
  }
  const std::int64_t gpus = std::int64_t{uniform.dp} * uniform.tp * uniform.pp;
  if (gpus != problem.gpus()) {
    throw Error(
        fmt::format("dp {} x pp {} x tp {} is {} GPUs", uniform.dp, uniform.pp, uniform.tp, gpus))
        .expected(fmt::format("all {} GPUs", problem.gpus()));
  }
  const std::int64_t together = uniform.mbs * uniform.dp;
  if (together > problem.global_batch ||
      (problem.flavour == Flavour::kFixed && problem.global_batch % together != 0)) {
    throw Error(fmt::format("mbs {} x dp {} is {} samples", uniform.mbs, uniform.dp, together))
        .expected(fmt::format("a part of {}", problem.global_batch));
  }
  Plan plan{.node_sequence = problem.types(),
            .device_groups =
                std::vector<int>(static_cast<std::size_t>(uniform.pp), uniform.dp * uniform.tp),
            .strategies = std::vector<Strategy>(static_cast<std::size_t>(uniform.pp),
                                                {uniform.dp, uniform.tp}),
            .batches = problem.global_batch / uniform.mbs / uniform.dp,
            .partition = {0}};
  const std::int64_t blocks = problem.layers - 2;
  for (int s = 0; s < uniform.pp; ++s) {
    const bool more = s >= 1 && s <= blocks % uniform.pp;
    plan.partition.push_back(plan.partition.back() + blocks / uniform.pp + (more ? 1 : 0) +
                             (s == 0 ? 1 : 0) + (s + 1 == uniform.pp ? 1 : 0));
  }
  return plan;
}

Price price_plan(const Problem& problem, const UniformPlan& uniform) {
  const Plan plan = plan_of(problem, uniform);
  if (problem.flavour == Flavour::kFixed) {
    return price_plan(problem, plan);
  }
  const Profile& profile = profile_of(problem, uniform);
  if (profile.sync_ms() == 0) {
    throw no_sync_error(problem);
  }
  const auto batches = static_cast<double>(plan.batches);
  const double bytes_per_ms = problem.nodes.front().intra * 1024 * 1024;
  Price price;
  double slowest = 0, sum = 0;
  for (const double stage : by_stage(profile.layer_ms, plan)) {
    slowest = std::max(slowest, stage);
    sum += stage;
  }
  price.execution = (batches - 1) * slowest + sum;
  price.synchronisation = batches * profile.sync_ms();
  price.update = 2 * problem.profiles.model.optimizer_ms / uniform.pp / uniform.tp;
  double bytes = 0;
  for (std::size_t s = 0; s + 1 < plan.partition.size(); ++s) {
    bytes = std::max(bytes, parameter_bytes(problem, {uniform.dp, uniform.tp}, plan.partition[s],
                                            plan.partition[s + 1]));
    if (s + 2 < plan.partition.size()) {
      price.pipeline +=
          elements_sent(problem, uniform.mbs, uniform.tp, plan.partition[s + 1]) / bytes_per_ms;
    }
  }
  price.data_parallel = 2.0 * (uniform.dp - 1) / (uniform.dp * bytes_per_ms) * bytes;
  price.batch = batches * problem.profiles.model.batch_generator_ms;
  return price;
}

Soundness soundness(const Problem& problem, const UniformPlan& uniform) {
  const Plan plan = plan_of(problem, uniform);
  if (problem.flavour == Flavour::kFixed) {
    return soundness(problem, plan);
  }
  Soundness found;
  const std::int64_t taken = plan.batches * uniform.mbs * uniform.dp;
  if (taken != problem.global_batch) {
    found.warnings.push_back(fmt::format("the plan leaves out {} of {} samples",
                                         problem.global_batch - taken, problem.global_batch));
  }
  const std::vector<double> needs = by_stage(profile_of(problem, uniform).layer_mb, plan);
  const double room = problem.nodes.front().memory * 1024;
  for (std::size_t s = 0; s < needs.size(); ++s) {
    if (plan.partition[s] == plan.partition[s + 1]) {
      found.warnings.push_back(fmt::format("stage {} has no layers", s));
    }
    if (needs[s] > room) {
      found.fits = false;
      found.warnings.push_back(fmt::format(
          "stage {} needs {:.1f} MB by its profile, a GPU has {:.1f}", s, needs[s], room));
    }
  }
  return found;
}

}  // namespace lockstep::metis
