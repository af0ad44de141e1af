#include "generator/compute/sustained.h"

namespace lockstep {
namespace {

constexpr SustainedRates kAmpere{0.90, 1, 0.60, "vTrain's A100s, one node, odd rows"};
constexpr SustainedRates kHopper{0.70, 1, 0.91, "H100s of four sources, odd rows"};
constexpr SustainedRates kHopperCut{1, 1, 0.91, "memory as the H100's"};
constexpr SustainedRates kBlackwell{0.55, 0.90, 0.91, "GB200s of two sources, odd rows"};
constexpr SustainedRates kBlackwellUltra{0.60, 1, 0.91, "Megatron-Bridge's GB300s, odd rows"};
constexpr SustainedRates kUnknown{1, 1, 1, "not measured"};

}  // namespace

SustainedRates sustained_rates(const GpuSpec& gpu) {
  switch (gpu.family) {
    case GpuFamily::kAmpere:
      return kAmpere;
    case GpuFamily::kHopper:
      return gpu.name == "H20" ? kHopperCut : kHopper;
    case GpuFamily::kBlackwell:
      return gpu.name.ends_with("B300") ? kBlackwellUltra : kBlackwell;
    case GpuFamily::kVolta:
    case GpuFamily::kCdna3:
      break;
  }
  return kUnknown;
}

GpuSpec under_load(const GpuSpec& gpu) {
  const SustainedRates rates = sustained_rates(gpu);
  GpuSpec loaded = gpu;
  for (double* rate : {&loaded.tf32, &loaded.fp16, &loaded.bf16}) {
    *rate *= rates.matrix;
  }
  loaded.fp8 *= rates.matrix8;
  loaded.vector_share = rates.memory;
  loaded.memory_bandwidth =
      Bandwidth::bytes_per_second(loaded.memory_bandwidth.bytes_per_second() * rates.memory);
  return loaded;
}

}  // namespace lockstep
