#include "app/plan/job_plan_input.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/flag_value.h"
#include "app/other_gpus.h"
#include "app/plan/search_stop.h"
#include "app/simulate/run_flow.h"
#include "base/error.h"
#include "base/text.h"
#include "topologies/topology_file.h"

namespace lockstep {
namespace {

PlanObjective objective_of(const std::string& text) {
  return text == "cost"     ? PlanObjective::kCost
         : text == "energy" ? PlanObjective::kEnergy
         : text == "memory" ? PlanObjective::kMemory
                            : PlanObjective::kTime;
}

double watts_of(std::string_view text) {
  const std::string_view number =
      text.ends_with('W') || text.ends_with('w') ? text.substr(0, text.size() - 1) : text;
  const std::optional<double> value = to_double(trim(number));
  if (!value || *value < 0 || *value > 1e6) {
    throw Error(fmt::format("'{}' is no power", printable(text)))
        .field("--gpu-power")
        .expected("such as 700W, or 700W:150W with what a waiting GPU takes");
  }
  return *value;
}

/// What a flag says of a GPU type: its one value, or that of TYPE=VALUE; empty: nothing.
std::string_view value_for(std::string_view text, std::string_view gpu_type) {
  if (text.find('=') == std::string_view::npos) {
    return text;
  }
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals != std::string_view::npos && trim(part.substr(0, equals)) == gpu_type) {
      return trim(part.substr(equals + 1));
    }
  }
  return {};
}

/// Whether a job's words, or its script, say how large a step is.
void require_batch(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const std::string_view flag : {"--gbs", "--global-batch", "--global_batch",
                                        "--from-megatron-args", "--from_megatron_args"}) {
      if (word.starts_with(flag)) {
        return;
      }
    }
  }
  throw Error("the sequences of a step are missing")
      .field("--gbs")
      .expected("--gbs N: plans are compared at one global batch");
}

}  // namespace

GpuRates rates_for(const JobPlanOptions& options, std::string_view gpu_type) {
  GpuRates rates;
  const std::string_view price_text = value_for(options.gpu_price, gpu_type);
  const std::string_view power_text = value_for(options.gpu_power, gpu_type);
  if (!price_text.empty()) {
    const std::optional<double> price = to_double(price_text);
    if (!price || *price < 0) {
      throw Error(fmt::format("'{}' is no price", printable(price_text)))
          .field("--gpu-price")
          .expected("US dollars a GPU and hour, such as 2.50, or H100=2.50,A100=1.20");
    }
    rates.usd_per_hour = *price;
  }
  if (!power_text.empty()) {
    const std::vector<std::string_view> parts = split(power_text, ':');
    rates.busy_watts = watts_of(parts.front());
    rates.idle_watts = parts.size() > 1 ? watts_of(parts[1]) : rates.busy_watts;
  }
  if (options.objective == "cost" && price_text.empty()) {
    throw Error(options.gpu_price.empty() ? "the objective cost needs a price"
                                          : fmt::format("no price of {}", gpu_type))
        .field("--gpu-price")
        .expected("US dollars a GPU and hour");
  }
  if (options.objective == "energy" && power_text.empty()) {
    throw Error(options.gpu_power.empty() ? "the objective energy needs the GPU's power"
                                          : fmt::format("no power of {}", gpu_type))
        .field("--gpu-power")
        .expected("such as 700W:150W: while it computes, while it waits");
  }
  return rates;
}

std::string JobPlanInput::problem_text() const {
  return fmt::format("{} on {} as {} seed {}{}", fmt::join(words.rest, " "), options.topology,
                     exact.job.gpu_type, options.seed, options.spray ? "" : " --no-spray");
}

JobPlanInput read_job_plan(const JobPlanOptions& options) {
  JobPlanInput input(options);
  input.words = take_axes(options.words, options.forbidden);
  const std::vector<std::string>& rest = input.words.rest;
  require_batch(rest);
  if (options.topology.empty()) {
    throw Error("a plan needs a cluster")
        .field("--topology")
        .expected("a file, or a template such as Spectrum-X:g=128");
  }
  input.exact = described_job(rest);
  if (input.exact.process) {
    throw Error("plans are made for the built-in step").field("--process");
  }
  input.topology = topology_from(options.topology, &input.exact.warnings);
  if (const std::int64_t gpus = input.topology.count(NodeKind::kGpu);
      input.words.axes.gpus.back() > gpus) {
    throw Error(fmt::format("the topology has {} GPUs", gpus))
        .field("--gpus")
        .expected(fmt::format("at most {}", gpus));
  }
  take_gpu_type(input.topology, input.exact);
  input.objective = objective_of(options.objective);
  input.threads = options.threads > 0
                      ? options.threads
                      : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  input.stop = stop_after(options.deadline);
  for (const std::string& spec : options.stragglers) {
    input.stragglers.push_back(Straggler::parse(spec));
  }
  return input;
}

PricedStep priced_step(const JobPlanInput& input, const Workload& workload, bool sprayed,
                       std::span<const Straggler> stragglers, std::int64_t step,
                       ReplayLimits limits) {
  SimulateOptions simulate;
  simulate.topology = input.options.topology;
  simulate.quiet = true;
  simulate.with_ports = false;
  simulate.spray = sprayed;
  simulate.limits = std::move(limits);
  simulate.latency_factor = input.latency_factor;
  simulate.seed = input.options.seed;
  simulate.step = step;
  simulate.stragglers.assign(stragglers.begin(), stragglers.end());
  simulate.keeps_rings = keep_rings(stragglers);
  const StepResult result = run_flow(workload, input.topology, simulate, nullptr);
  PricedStep priced;
  priced.step_s = result.total.seconds();
  priced.compute_s = result.compute.seconds();
  priced.bubble_s = result.bubble.seconds();
  priced.work = result.replay_work;
  for (std::size_t i = 0; i < priced.exposed_s.size(); ++i) {
    priced.exposed_s[i] = result.exposed_by_group[i].seconds();
  }
  return priced;
}

}  // namespace lockstep
