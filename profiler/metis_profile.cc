// The profile files that the planner Metis reads: planner/metis/profile.h is the reader.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "generator/compute/gpu_spec.h"
#include "generator/exact/memory.h"
#include "generator/exact/optimizer_step.h"
#include "generator/exact/pass.h"
#include "generator/exact/rank_sizes.h"
#include "profiler/job_kernels.h"
#include "profiler/outputs.h"

namespace lockstep {
namespace {

constexpr double kMega = 1024.0 * 1024.0;

struct LayerProfile {
  double ms = 0, mb = 0;
  double parameter_bytes = 0;
};

class Layers {
 public:
  Layers(const Job& job, const Measurements& measurements)
      : job_(job), kernels_(job), measurements_(measurements), sizes_(rank_sizes(job)) {}

  LayerProfile of(std::span<const Module> modules) const {
    LayerProfile layer;
    Bytes working;
    for (const bool backward : {false, true}) {
      for (const Kernel& kernel :
           backward ? kernels_.backward(modules) : kernels_.forward(modules)) {
        layer.ms += 1e3 * measurements_.median_s(kernel);
        working = std::max(working, measurements_.of(kernel).peak);
      }
    }
    PassOptions options;
    options.sizes = sizes_;
    const ParameterCount count = parameters_of(modules, options);
    const auto parameters = static_cast<double>(count.dense + count.expert);
    layer.parameter_bytes = parameters * sizes_.parameter;
    StageMemory held;
    held.parameters = count;
    fill_states(job_, held);
    const Bytes all =
        held.weights + held.gradients + held.optimizer + kept_activations(modules, job_) + working;
    layer.mb = static_cast<double>(all.count()) / kMega;
    return layer;
  }

 private:
  const Job& job_;
  JobKernels kernels_;
  const Measurements& measurements_;
  RankSizes sizes_;
};

/// The step's end: norm, Adam, reset and copy of all parameters of the rank.
double step_ms(const Job& job, const Measurements& measurements) {
  const RankSizes sizes = rank_sizes(job);
  PassOptions options;
  options.sizes = sizes;
  ParameterCount held =
      parameters_of(job.model.before, options) + parameters_of(job.model.after, options);
  for (const LayerBlock& block : job.model.blocks) {
    const ParameterCount one = parameters_of(block.modules, options);
    held += {one.dense * block.layers, one.expert * block.layers, 0};
  }
  const std::int64_t owned = owned_parameters(job, held);
  const JobKernels kernels(job);
  double seconds = 0;
  for (const Operator& op : {gradient_norm(owned, sizes), optimizer_update(owned, sizes),
                             gradient_reset(job, held, sizes), parameter_copy(owned, sizes)}) {
    seconds += has_work(op) ? measurements.median_s(kernels.of(op)) : 0;
  }
  return 1e3 * seconds;
}

constexpr double kLeastSync = 1e-6;  // ms

}  // namespace

bool is_metis_job(const Job& job) { return job.pp == 1 && job.vpp == 1 && job.cp == 1; }

std::string metis_json(const Job& job, const Measurements& measurements) {
  if (!is_metis_job(job)) {
    throw Error("Metis cuts the model into stages itself: a profile is of one stage")
        .field("--pp")
        .expected("--pp 1, --vpp 1 and --cp 1");
  }
  const Layers layers(job, measurements);
  std::vector<LayerProfile> all{layers.of(job.model.before)};
  const double optimizer_ms = step_ms(job, measurements);
  for (const LayerBlock& block : job.model.blocks) {
    const LayerProfile one = layers.of(block.modules);
    all.insert(all.end(), static_cast<std::size_t>(block.layers), one);
  }
  all.push_back(layers.of(job.model.after));
  double total = 0;
  Json ms = Json::array(), mb = Json::array(), bytes = Json::array();
  double all_bytes = 0;
  for (const LayerProfile& layer : all) {
    total += layer.ms;
    all_bytes += layer.parameter_bytes;
    ms.push_back(layer.ms);
    mb.push_back(layer.mb);
    bytes.push_back(layer.parameter_bytes);
  }
  double sum_mb = 0;
  for (const Json& layer : mb) {
    sum_mb += layer.get<double>();
  }
  Json json;
  json["model"] = {
      {"model_name", job.model.name},
      {"num_layers", all.size()},
      {"parameters",
       {{"total_parameters_bytes", all_bytes}, {"parameters_per_layer_bytes", std::move(bytes)}}}};
  json["execution_time"] = {{"total_time_ms", total + optimizer_ms},
                            // Metis takes the layers' own sum, to the last bit, for no profile.
                            {"forward_backward_time_ms", total + kLeastSync},
                            {"batch_generator_time_ms", 0.0},
                            {"layernorm_grads_all_reduce_time_ms", 0.0},
                            {"embedding_grads_all_reduce_time_ms", 0.0},
                            {"optimizer_time_ms", optimizer_ms},
                            {"layer_compute_total_ms", std::move(ms)}};
  json["execution_memory"] = {{"total_memory_mb", sum_mb},
                              {"layer_memory_total_mb", std::move(mb)}};
  return to_text(json);
}

std::string metis_file_name(const Job& job, const MeasuredDevice& device) {
  const GpuSpec* known = find_gpu_spec(device.gpu);
  std::string type = known != nullptr ? std::string(known->name) : device.gpu;
  std::ranges::replace(type, ' ', '-');
  std::ranges::replace(type, '/', '-');
  return fmt::format("DeviceType.{}_tp{}_bs{}.json", type, job.tp, job.micro_batch);
}

}  // namespace lockstep
