#include "app/serve/live_model.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/report_flags.h"
#include "app/simulate/job_figures.h"
#include "app/simulate/run_flow.h"
#include "app/simulate/run_steps.h"
#include "app/simulate/step_document.h"
#include "app/usage.h"
#include "base/error.h"
#include "base/text.h"
#include "report/html/report_document.h"
#include "report/step_json.h"
#include "topologies/topology_maker.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostSeen = 4096;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

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
      link.set_rate(Bandwidth::bytes_per_second(link.rate.bytes_per_second() * factor));
      if (link.rate > kMostLinkRate) {
        throw Error("a link would be faster than any")
            .field(is_nvlink[i] ? "nvlink_bandwidth" : "network_bandwidth")
            .expected("at most " + to_text(kMostLinkRate));
      }
    }
    link.set_delay(scaled(link.delay, sliders.latency));
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

/// Flags of what a live model has not.
void refuse_other_flags(const SimulateOptions& options) {
  if (options.engine != "flow") {
    throw Error("the live model is simulated by the flow engine").field("--engine");
  }
  if (options.topology.empty()) {
    throw Error("the flow engine needs a topology").field("--topology");
  }
  for (const auto& [flag, is_given] :
       {std::pair("--steps", options.steps > 1), std::pair("--sensitivity", options.sensitivity),
        std::pair("--job-matrix", options.job_matrix),
        std::pair("--list-stragglers", options.list_stragglers),
        std::pair("--verify-symmetry", options.verify_symmetry),
        std::pair("--csv", !options.csv_dir.empty()), std::pair("--trace", !options.trace.empty()),
        std::pair("--byteps-trace", !options.byteps_trace.empty()),
        std::pair("--memory-csv", !options.memory_csv.empty()),
        std::pair("--report", !options.output.report.empty()),
        std::pair("--figure", !options.output.figures.empty()),
        std::pair("--fct", !options.fct_file.empty()),
        std::pair("--pfc", !options.pfc_file.empty()),
        std::pair("--samples", !options.samples.empty())}) {
    if (is_given) {
      throw Error("a live step is one step, and writes no files").field(flag);
    }
  }
}

/// "network bandwidth × 2, GPU 3 slower by 1.5".
std::string text_of(const LiveSliders& sliders) {
  std::string text;
  const auto add = [&](const std::string& what, double factor) {
    if (factor != 1) {
      text += fmt::format("{}{} × {:.4g}", text.empty() ? "" : ", ", what, factor);
    }
  };
  add("NVLink bandwidth", sliders.nvlink_bandwidth);
  add("network bandwidth", sliders.network_bandwidth);
  add("latency", sliders.latency);
  add("GPU speed", sliders.gpu_speed);
  add(fmt::format("time of GPU {}", sliders.straggler_gpu), sliders.straggler);
  return text.empty() ? "all as they were" : text;
}

}  // namespace

LiveModel::LiveModel(const std::vector<std::string>& arguments) : arguments_(arguments) {
  for (const char* help : {"-h", "--help"}) {
    if (std::ranges::find(arguments, help) != arguments.end()) {
      throw Error("a live step prints no help").field(help).hint("lockstep simulate --help");
    }
  }
  CLI::App app("", "simulate");
  app.allow_extras();
  app.set_help_flag();
  define_simulate_options(app, options_);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& problem) {
    throw usage_error(app, problem);
  }
  check_numbers(app);
  refuse_other_flags(options_);
  take_job(app, options_);
  options_.quiet = true;
  input_ = read_step_input(options_);
}

const Workload& LiveModel::workload_at(double gpu_speed) {
  if (gpu_speed == 1) {
    return input_.workload;
  }
  if (scaled_.jobs.empty()) {
    scaled_ = input_.workload;
  }
  if (gpu_speed != gpu_speed_) {
    scale_compute(input_.workload, 1 / gpu_speed, scaled_);
    gpu_speed_ = gpu_speed;
  }
  return scaled_;
}

Topology LiveModel::topology_at(const LiveSliders& sliders) const {
  Topology topology = *input_.topology;
  scale_links(topology, sliders);
  return topology;
}

SimulateOptions LiveModel::options_at(const LiveSliders& sliders) const {
  SimulateOptions options = options_;
  if (!options.send_latency.empty()) {
    options.send_latency =
        fmt::format("{}ps", scaled(parse_time(options.send_latency), sliders.latency).count_ps());
  }
  if (sliders.straggler != 1) {
    options.stragglers.push_back(
        Straggler::parse(fmt::format("gpu:{}:{}", sliders.straggler_gpu, sliders.straggler)));
  }
  return options;
}

void LiveModel::prepare(const LiveSliders& sliders) {
  if (scaled_.jobs.empty()) {
    scaled_ = input_.workload;
  }
  if (!slow_gpus_.contains(sliders.straggler_gpu)) {
    LiveSliders slow = sliders;
    slow.straggler = 1.5;  // any; which ranks are alike does not hang on how much
    simulate(slow);
  }
}

StepResult LiveModel::simulate(const LiveSliders& sliders, bool fresh) {
  SimulateOptions options = options_at(sliders);
  if (!fresh) {
    if (sliders.straggler != 1) {
      slow_gpus_.insert(sliders.straggler_gpu);
    }
    options.kept = &kept_;
    kept_.computations = fmt::format("{}", sliders.gpu_speed);
    kept_.network = fmt::format("{} {} {}", sliders.nvlink_bandwidth, sliders.network_bandwidth,
                                sliders.latency);
  }
  return run_flow(workload_at(sliders.gpu_speed), topology_at(sliders), options, nullptr);
}

Json LiveModel::numbers_of(const LiveSliders& sliders, const StepResult& result) const {
  Json exposed = Json::object();
  for (std::size_t g = 0; g < result.exposed_by_group.size(); ++g) {
    if (result.exposed_by_group[g] > Time()) {
      exposed[std::string(name_of(static_cast<GroupKind>(g)))] =
          result.exposed_by_group[g].seconds();
    }
  }
  Json json{{"schema", "lockstep-live/1"},
            {"gpus", result.first_gpus()},
            {"total_s", result.total.seconds()},
            {"compute_s", result.compute.seconds()},
            {"exposed_s", result.exposed.seconds()},
            {"bubble_s", result.bubble.seconds()},
            {"skew_s", result.skew.seconds()},
            {"exposed_by_group_s", std::move(exposed)},
            {"sliders", text_of(sliders)}};
  if (result.others > Time()) {
    json["other_jobs_s"] = result.others.seconds();
  }
  if (input_.job) {
    json["headline"] = headline_json(*input_.job, result.first_end(), options_.gpu_hour_price);
  }
  return json;
}

Json LiveModel::evaluate(const LiveSliders& sliders) {
  const auto begin = std::chrono::steady_clock::now();
  auto known = seen_.find(sliders);
  const bool kept = known != seen_.end();
  if (!kept) {
    Json json = numbers_of(sliders, simulate(sliders));
    if (seen_.size() >= kMostSeen) {
      seen_.clear();
    }
    known = seen_.emplace(sliders, std::move(json)).first;
  }
  Json reply = known->second;
  reply["kept"] = kept;
  reply["took_s"] = seconds_since(begin);
  return reply;
}

Json LiveModel::evaluate_with_report(const LiveSliders& sliders) {
  const auto begin = std::chrono::steady_clock::now();
  const Workload& workload = workload_at(sliders.gpu_speed);
  const Topology topology = topology_at(sliders);
  StepDetail detail;
  SimulateOptions options = options_at(sliders);
  options.detail = &detail;
  // What is kept does not know what the ports carried.
  StepResult result =
      run_steps(options, nullptr, [&](const SimulateOptions& each, Timeline* timeline) {
        return run_flow(workload, topology, each, timeline);
      });
  label_step(options, result);
  result.warnings.insert(result.warnings.begin(), input_.warnings.begin(), input_.warnings.end());
  Json more = more_of_step(options, result, input_.job ? &*input_.job : nullptr);
  more["command"] = "lockstep simulate " + shell_text(arguments_);
  Json reply = numbers_of(sliders, result);
  more["sliders"] = reply["sliders"];
  reply["report"] = for_page({"live", parse_json(step_json(result, &topology, more), "the step")});
  reply["kept"] = false;
  reply["took_s"] = seconds_since(begin);
  return reply;
}

}  // namespace lockstep
