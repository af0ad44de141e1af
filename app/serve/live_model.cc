#include "app/serve/live_model.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/generate_exact.h"
#include "app/simulate/run_flow.h"
#include "app/usage.h"
#include "base/error.h"
#include "base/text.h"
#include "topologies/topology_file.h"
#include "workloads/read_workload.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostSeen = 4096;

Time scaled(Time time, double factor) {
  return factor == 1 ? time : Time::seconds(time.seconds() * factor);
}

/// Factors of the classes of links, NVLink apart from the network.
void scale_links(Topology& topology, const LiveSliders& sliders) {
  std::vector<bool> is_nvlink(topology.link_classes.size());
  for (const Link& link : topology.links) {
    for (const NodeId end : {link.a, link.b}) {
      if (topology.nodes[end.index()].kind == NodeKind::kNvSwitch) {
        is_nvlink[static_cast<std::size_t>(link.link_class)] = true;
      }
    }
  }
  for (std::size_t i = 0; i < topology.link_classes.size(); ++i) {
    LinkClass& link = topology.link_classes[i];
    const double factor = is_nvlink[i] ? sliders.nvlink_bandwidth : sliders.network_bandwidth;
    if (factor != 1) {
      link.rate = Bandwidth::bytes_per_second(link.rate.bytes_per_second() * factor);
    }
    link.delay = scaled(link.delay, sliders.latency);
  }
}

/// The times of operations, scaled: most programs have many operations of a few times.
class ScaledTimes {
 public:
  explicit ScaledTimes(double factor) : factor_(factor) {}
  Time operator()(Time time) {
    Known& known = known_[static_cast<std::size_t>(time.count_ps()) * 0x9E3779B97F4A7C15U >> 54];
    if (known.from != time) {
      known = {time, scaled(time, factor_)};
    }
    return known.to;
  }

 private:
  struct Known {
    Time from, to;  // 0 stays 0
  };
  double factor_;
  std::array<Known, 1024> known_{};
};

/// `scaled_workload` is a copy of `workload` and gets its computation times, by a factor.
void scale_compute(const Workload& workload, double factor, Workload& scaled_workload) {
  ScaledTimes times(factor);
  for (std::size_t j = 0; j < workload.jobs.size(); ++j) {
    const WorkloadJob& from = workload.jobs[j];
    WorkloadJob& to = scaled_workload.jobs[j];
    if (const auto* table = std::get_if<LayerTable>(&from.work)) {
      auto& layers = std::get<LayerTable>(to.work).layers;
      for (std::size_t i = 0; i < layers.size(); ++i) {
        const Layer& layer = table->layers[i];
        layers[i].forward.compute = scaled(layer.forward.compute, factor);
        layers[i].input_grad.compute = scaled(layer.input_grad.compute, factor);
        layers[i].weight_grad.compute = scaled(layer.weight_grad.compute, factor);
      }
      continue;
    }
    const auto& programs = std::get<OpTable>(from.work).programs;
    auto& scaled_programs = std::get<OpTable>(to.work).programs;
    for (std::size_t p = 0; p < programs.size(); ++p) {
      for (std::size_t i = 0; i < programs[p].ops.size(); ++i) {
        scaled_programs[p].ops[i].compute = times(programs[p].ops[i].compute);
      }
    }
  }
}

}  // namespace

LiveModel::LiveModel(const std::vector<std::string>& arguments) {
  CLI::App app("", "simulate");
  app.allow_extras();
  define_simulate_options(app, options_);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& problem) {
    throw usage_error(app, problem);
  }
  check_numbers(app);
  options_.job = app.remaining();
  if (options_.engine != "flow") {
    throw Error("the live model is simulated by the flow engine").field("--engine");
  }
  if (options_.topology.empty()) {
    throw Error("the flow engine needs a topology").field("--topology");
  }
  for (const std::string& spec : options_.straggler_specs) {
    options_.stragglers.push_back(Straggler::parse(spec));
  }
  options_.quiet = true;
  if (options_.workload.empty()) {
    std::vector<std::string> words = options_.job;
    if (options_.gpus > 0) {
      words.insert(words.end(), {"--gpus", std::to_string(options_.gpus)});
    }
    if (!options_.gpu_type.empty()) {
      words.insert(words.end(), {"--gpu-type", options_.gpu_type});
    }
    ExactJob job = exact_job(words);
    workload_ = exact_workload_of(job).workload;
  } else {
    workload_ = read_workload(options_.workload);
    if (options_.gpus > 0 && workload_.jobs.size() == 1) {
      workload_.jobs.front().parallel.gpus = options_.gpus;
    }
  }
  topology_ = topology_from(options_.topology, nullptr);
}

const Workload& LiveModel::workload_at(double gpu_speed) {
  if (gpu_speed == 1) {
    return workload_;
  }
  if (scaled_.jobs.empty()) {
    scaled_ = workload_;
  }
  if (gpu_speed != gpu_speed_) {
    scale_compute(workload_, 1 / gpu_speed, scaled_);
    gpu_speed_ = gpu_speed;
  }
  return scaled_;
}

StepResult LiveModel::simulate(const LiveSliders& sliders, bool fresh) {
  Topology topology = topology_;
  scale_links(topology, sliders);
  SimulateOptions options = options_;
  if (!options.send_latency.empty()) {
    options.send_latency =
        fmt::format("{}ps", scaled(parse_time(options.send_latency), sliders.latency).count_ps());
  }
  if (sliders.straggler != 1) {
    options.stragglers.push_back(
        Straggler::parse(fmt::format("gpu:{}:{:.6g}", sliders.straggler_gpu, sliders.straggler)));
  }
  if (!fresh) {
    options.kept = &kept_;
    kept_.computations = fmt::format("{}", sliders.gpu_speed);
    kept_.network = fmt::format("{} {} {}", sliders.nvlink_bandwidth, sliders.network_bandwidth,
                                sliders.latency);
  }
  return run_flow(workload_at(sliders.gpu_speed), topology, options, nullptr);
}

Json LiveModel::evaluate(const LiveSliders& sliders) {
  const auto begin = std::chrono::steady_clock::now();
  auto known = seen_.find(sliders);
  const bool kept = known != seen_.end();
  if (!kept) {
    const StepResult result = simulate(sliders);
    Json exposed = Json::object();
    for (std::size_t g = 0; g < result.exposed_by_group.size(); ++g) {
      if (result.exposed_by_group[g] > Time()) {
        exposed[std::string(name_of(static_cast<GroupKind>(g)))] =
            result.exposed_by_group[g].seconds();
      }
    }
    Json json{{"schema", "lockstep-live/1"},
              {"gpus", result.gpus},
              {"total_s", result.total.seconds()},
              {"compute_s", result.compute.seconds()},
              {"exposed_s", result.exposed.seconds()},
              {"bubble_s", result.bubble.seconds()},
              {"exposed_by_group_s", std::move(exposed)}};
    if (seen_.size() >= kMostSeen) {
      seen_.clear();
    }
    known = seen_.emplace(sliders, std::move(json)).first;
  }
  Json reply = known->second;
  reply["kept"] = kept;
  reply["took_s"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return reply;
}

}  // namespace lockstep
