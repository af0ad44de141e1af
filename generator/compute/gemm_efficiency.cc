#include "generator/compute/gemm_efficiency.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr double kTile = 128;

// Printed by `bench/fit_gemm.py`.
constexpr GemmEfficiency kHopper16{
    Time::ns(5249), 0.820, 0.960, 0.013, 0.803, 0.170, "189 products on an H100 (bf16, XLA)"};
constexpr GemmEfficiency kHopperTf32{Time::ns(6475),
                                     3.130,
                                     0.907,
                                     0.875,
                                     0.588,
                                     0.006,
                                     "189 products on an H100 (fp32 as TF32, XLA)"};
constexpr GemmEfficiency kHopperFp8{
    Time::ns(4818),
    0.820,
    0.702,
    0.013,
    0.803,
    0.170,
    "6 products on H100 and H200 (fp8, cuBLASLt), the rest as bf16"};
constexpr GemmEfficiency kAmpere16{Time::ns(7890),
                                   0.820,
                                   0.819,
                                   0.013,
                                   0.803,
                                   0.170,
                                   "3 products on an A100 (fp16, cuBLASLt), the rest as Hopper's"};
// No measurement: taken over, and said so.
constexpr GemmEfficiency kLikeHopper16{Time::ns(5249),
                                       0.820,
                                       0.960,
                                       0.013,
                                       0.803,
                                       0.170,
                                       "taken over from the H100's bf16: not measured"};
constexpr GemmEfficiency kLikeHopperTf32{Time::ns(6475),
                                         3.130,
                                         0.907,
                                         0.875,
                                         0.588,
                                         0.006,
                                         "taken over from the H100's TF32: not measured"};
constexpr GemmEfficiency kLikeHopperFp8{Time::ns(4818),
                                        0.820,
                                        0.702,
                                        0.013,
                                        0.803,
                                        0.170,
                                        "taken over from the H100's fp8: not measured"};
constexpr GemmEfficiency kLikeAmpere16{Time::ns(7890),
                                       0.820,
                                       0.819,
                                       0.013,
                                       0.803,
                                       0.170,
                                       "taken over from the A100's fp16: not measured"};

double real(std::int64_t v) { return static_cast<double>(v); }

}  // namespace

const GemmEfficiency& gemm_efficiency(GpuFamily family, Precision precision) {
  const bool hopper = family == GpuFamily::kHopper;
  if (precision == Precision::kFp8) {
    return hopper ? kHopperFp8 : kLikeHopperFp8;
  }
  if (precision == Precision::kFp32) {
    return hopper ? kHopperTf32 : kLikeHopperTf32;
  }
  switch (family) {
    case GpuFamily::kHopper:
      return kHopper16;
    case GpuFamily::kAmpere:
      return kAmpere16;
    case GpuFamily::kVolta:
      return kLikeAmpere16;
    case GpuFamily::kBlackwell:
    case GpuFamily::kCdna3:
      break;
  }
  return kLikeHopper16;
}

int element_bytes(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
    case Precision::kFp16:
      return 2;
    case Precision::kFp32:
      return 4;
    case Precision::kFp8:
      return 1;
  }
  return 2;
}

Time gemm_time(const GemmShape& shape, const GpuSpec& gpu, Precision precision) {
  return gemm_time(shape, gpu, precision, gemm_efficiency(gpu.family, precision));
}

Time gemm_time(const GemmShape& shape, const GpuSpec& gpu, Precision precision,
               const GemmEfficiency& fit) {
  if (std::min({shape.batch, shape.m, shape.n, shape.k}) < 1) {
    throw Error("a matrix product of " + std::to_string(shape.batch) + " x (" +
                std::to_string(shape.m) + " x " + std::to_string(shape.k) + ") (" +
                std::to_string(shape.k) + " x " + std::to_string(shape.n) + ")")
        .expected("sizes of at least 1");
  }
  const double peak = peak_flops(gpu, precision);
  const double batch = real(shape.batch);
  const double m = real(shape.m);
  const double n = real(shape.n);
  const double k = real(shape.k);
  const double sms = gpu.multiprocessors;
  const double bandwidth = gpu.memory_bandwidth.bytes_per_second();
  const double element = element_bytes(precision);

  const double tiles_each = batch * std::ceil(m / kTile) * std::ceil(n / kTile) / sms;
  const double waves = tiles_each > 1 ? std::ceil(tiles_each) : std::max(tiles_each, fit.fill);
  const double arithmetic = waves * 2 * kTile * kTile * k * sms / (fit.compute * peak);
  const double input = fit.input * element * batch * (m + n) * k / bandwidth;
  const double output = fit.output * element * batch * m * n / bandwidth;
  const double memory = element * batch * ((m + n) * k + m * n) / (kMemoryEfficiency * bandwidth);
  return fit.launch +
         Time::seconds(std::max(fit.depth_ns * 1e-9 * k + arithmetic + input + output, memory));
}

}  // namespace lockstep
