#include "generator/compute/sustained.h"

namespace lockstep {
namespace {

constexpr SustainedRates kAmpere{0.90, 0.60, "vTrain's A100s, one node, odd rows"};
constexpr SustainedRates kUnknown{1, 1, "not measured"};

}  // namespace

const SustainedRates& sustained_rates(GpuFamily family) {
  return family == GpuFamily::kAmpere ? kAmpere : kUnknown;
}

GpuSpec under_load(const GpuSpec& gpu) {
  const SustainedRates& rates = sustained_rates(gpu.family);
  GpuSpec loaded = gpu;
  for (double* rate : {&loaded.tf32, &loaded.fp16, &loaded.bf16, &loaded.fp8}) {
    *rate *= rates.matrix;
  }
  loaded.memory_bandwidth =
      Bandwidth::bytes_per_second(loaded.memory_bandwidth.bytes_per_second() * rates.memory);
  return loaded;
}

}  // namespace lockstep
