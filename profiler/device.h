#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "profiler/measurements.h"

namespace lockstep {

/// How kernels are timed.
struct TimingOptions {
  int warmups = 3;       ///< runs before the first that counts
  int samples = 20;      ///< runs that count; fewer, 5 at least, of what takes long: 0.2 s
  bool flush_l2 = true;  ///< of a kernel by itself: the L2 cache is overwritten before each of them
  /// A kernel by itself: a product runs before each run, so that the clock is that of a GPU without
  /// a pause; a job's kernels take turns. Else each is alone, with pauses, at the highest clock.
  bool load = true;
  bool search = true;  ///< products: the library's candidates are timed and the fastest taken
  friend bool operator==(const TimingOptions&, const TimingOptions&) = default;
};

/// A kernel of a job, and how often it runs in one step of a rank.
struct StepKernel {
  Kernel kernel;
  std::int64_t times = 1;
};

/// Slowdowns when computation and copies share a GPU.
struct InterferenceRow {
  int copy_blocks = 0;               ///< thread blocks of the copy: at most one an SM
  double compute_s = 0, copy_s = 0;  ///< medians, each alone
  /// Medians of each beside the other, which lasts longer.
  double both_compute_s = 0, both_copy_s = 0;
};

/// A GPU that kernels are timed on. One thread at a time.
class Device {
 public:
  virtual ~Device() = default;
  virtual MeasuredDevice facts() const = 0;
  /// ERRORS: Error if this GPU, or this build, cannot run it (too little memory, a library that is
  /// missing, a shape that no kernel takes): it says which.
  virtual Measurement measure(const Kernel& kernel, const TimingOptions& options) = 0;
  /// All kernels of a job by turns, as often beside each other as in a step, so that the GPU's
  /// clock is what this job leaves it. Adds to `kernels` and `left_out` of `to`.
  virtual void measure_step(std::span<const StepKernel> kernels, const TimingOptions& options,
                            Measurements& to) = 0;
  /// False once an error has left it unusable: nothing further can be measured.
  virtual bool usable() const { return true; }
  /// A product beside a copy of `copy_bytes` that takes so many thread blocks; each is timed beside
  /// the other repeated until it lasts longer.
  virtual InterferenceRow interfere(const Kernel& product, std::int64_t copy_bytes, int copy_blocks,
                                    const TimingOptions& options) = 0;
};

/// Adds one kernel's measurement to `to`, or to its `left_out` why there is none.
inline void measure_one(Device& device, const Kernel& kernel, const TimingOptions& options,
                        Measurements& to) {
  try {
    to.kernels[kernel] = device.measure(kernel, options);
  } catch (const Error& error) {
    to.left_out.push_back(to_text(kernel) + ": " + error.message());
  }
}

/// Times each kernel by itself. One that the device cannot run is left out with the
/// reason; if none can be run that is an error. `go_on` is called before each with its number; once
/// it says no the rest is left out, likewise once the device is not usable(). `facts`, `when` and
/// `command` are filled in by the caller but for the device.
Measurements measure_all(Device& device, std::span<const Kernel> kernels,
                         const TimingOptions& options,
                         const std::function<bool(std::size_t)>& go_on = {});

/// Times the kernels of a job together (Device::measure_step). ERRORS: as of measure_all().
Measurements measure_job(Device& device, std::span<const StepKernel> kernels,
                         const TimingOptions& options);

}  // namespace lockstep
