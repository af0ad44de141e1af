#pragma once

#include <set>
#include <span>

#include "base/error.h"
#include "profiler/device.h"
#include "profiler/kernel_cost.h"

namespace lockstep::testing {

/// A GPU in name only: 5 us, and 500 TFLOP/s or 2 TB/s, whichever is longer; samples that differ
/// by a known percent.
class FakeDevice : public Device {
 public:
  std::set<KernelKind> refused;
  bool breaks = false;  ///< is of no more use once it has refused one

  MeasuredDevice facts() const override {
    return {"NVIDIA H200", "580.1", {{"cublasLt", "13.0"}}, 132, Bytes(141'000'000'000)};
  }
  Measurement measure(const Kernel& kernel, const TimingOptions& options) override {
    if (refused.contains(kernel.kind)) {
      broken_ = breaks;
      throw Error("this device cannot");
    }
    Measurement one;
    one.kernel = kernel;
    const double time = seconds(kernel);
    for (int i = 0; i < options.samples; ++i) {
      one.seconds.push_back(time * (1 + 0.01 * (i % 3 - 1)));  // median: time
    }
    one.clock_low_Hz = 1.7e9;
    one.clock_high_Hz = 1.98e9;
    one.temperature_C = 50;
    one.peak = kernel_cost(kernel).footprint + Bytes(1 << 20);
    return one;
  }
  bool usable() const override { return !broken_; }
  void measure_step(std::span<const StepKernel> kernels, const TimingOptions& options,
                    Measurements& to) override {
    for (const StepKernel& each : kernels) {
      measure_one(*this, each.kernel, options, to);
    }
  }
  InterferenceRow interfere(const Kernel&, std::int64_t, int blocks,
                            const TimingOptions&) override {
    return {blocks, 1e-3, 2e-3, 1e-3 * (1 + blocks / 100.0), 2.2e-3};
  }
  static double seconds(const Kernel& kernel) {
    const KernelCost cost = kernel_cost(kernel);
    return 5e-6 + std::max(cost.flops / 500e12, cost.bytes / 2e12);
  }

 private:
  bool broken_ = false;
};

inline Measurements measured(std::span<const Kernel> kernels) {
  FakeDevice device;
  return measure_all(device, kernels, {1, 9, true, true});
}

}  // namespace lockstep::testing
