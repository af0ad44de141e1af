#include "profiler/outputs.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/compute/gpu_spec.h"
#include "profiler/kernel_cost.h"
#include "profiler/statistics.h"

namespace lockstep {

OperatorProfile operator_profile(const ProfilePlan& plan, const Measurements& measurements) {
  OperatorProfile profile;
  const GpuSpec* known = find_gpu_spec(measurements.device.gpu);
  profile.gpu = known != nullptr ? std::string(known->name) : measurements.device.gpu;
  profile.driver = measurements.device.driver;
  profile.libraries = measurements.device.libraries;
  for (const auto& [key, planned] : plan.operators) {
    double median = 0, spread = 0;
    std::size_t samples = 0, measured = 0;
    for (const Kernel& kernel : planned.kernels) {
      if (measurements.has(kernel)) {
        const SampleSummary summary = summarise(measurements.of(kernel).seconds);
        median += summary.median;
        spread = std::max(spread, summary.spread());
        samples += summary.samples;
        ++measured;
      }
    }
    if (measured > 0) {
      profile.times[key] = {Time::seconds(median / static_cast<double>(measured)),
                            Time::seconds(spread), static_cast<std::int64_t>(samples)};
    }
  }
  return profile;
}

std::string aiob_text(const ProfilePlan& plan, const Measurements& measurements) {
  constexpr double kMicro = 1e6;
  std::string text;
  std::size_t least = 0;
  for (const AiobPart& part : plan.aiob) {
    AiobSummary sum;
    for (const Kernel& kernel : part.kernels) {
      const Measurement& one = measurements.of(kernel);
      const AiobSummary own = aiob_summary(one.seconds);
      sum.most += own.most;
      sum.least += own.least;
      sum.mean += own.mean;
      least = least == 0 ? one.seconds.size() : std::min(least, one.seconds.size());
    }
    text += fmt::format(
        "{}:\n    time_gpu_max: {:.3f}\n    time_gpu_min: {:.3f}\n    time_gpu_avg: {:.3f}\n",
        part.name, sum.most * kMicro, sum.least * kMicro, sum.mean * kMicro);
  }
  return fmt::format("train_iter:{}\n", least) + text;
}

std::string aiob_file_name(const Job& job) {
  return fmt::format("{}-world_size{}-tp{}-pp{}-ep{}-gbs{}-mbs{}-seq{}-flash_attn-{}.txt",
                     job.model.name, job.gpus, job.tp, job.pp, job.ep, job.global_batch,
                     job.micro_batch, job.seq, job.flash_attention ? "True" : "False");
}

std::string measurement_table(const Measurements& measurements) {
  std::string text = fmt::format("{:>12} {:>8} {:>12} {:>10} {:>9}  {}\n", "median us", "spread",
                                 "rate", "clock MHz", "outliers", "operator");
  for (const auto& [kernel, one] : measurements.kernels) {
    const SampleSummary summary = summarise(one.seconds);
    const KernelCost cost = kernel_cost(kernel);
    const double rate =
        summary.median > 0 ? (cost.flops > 0 ? cost.flops : cost.bytes) / summary.median : 0;
    const std::string rate_text = cost.flops > 0 ? fmt::format("{:.1f} TFLOP/s", rate * 1e-12)
                                                 : fmt::format("{:.2f} TB/s", rate * 1e-12);
    const std::string clock =
        one.clock_low_Hz > 0
            ? fmt::format("{:.0f}-{:.0f}", one.clock_low_Hz * 1e-6, one.clock_high_Hz * 1e-6)
            : "-";
    text += fmt::format("{:>12.3f} {:>7.2f}% {:>12} {:>10} {:>9}  {}\n", summary.median * 1e6,
                        summary.median > 0 ? 100 * summary.spread() / summary.median : 0.0,
                        rate_text, clock, summary.outliers.size(), to_text(kernel));
  }
  for (const std::string& left_out : measurements.left_out) {
    text += fmt::format("left out: {}\n", left_out);
  }
  return text;
}

}  // namespace lockstep
