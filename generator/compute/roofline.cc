#include "generator/compute/roofline.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "generator/compute/gemm_efficiency.h"
#include "generator/compute/memory_efficiency.h"

namespace lockstep {
namespace {

constexpr Time kLaunch = Time::us(5);

// What our own profiler measured on an H200 under load (workloads/profiles/h200, cuDNN 9.19): every
// second of 161 jobs, over what products sustain there (docs/models.md).
constexpr AttentionPass kHopperForward{0.732, 13e-9, 310}, kHopperBackward{0.66, 35.4e-9, 654};
constexpr double kHiding = 1.2;  // how work and one block's way add up: 1 one after the other
constexpr AttentionEfficiency kHopper{kHopperForward, kHopperBackward,
                                      "our own profiles of an H200 (cuDNN 9.19)"};
constexpr AttentionEfficiency kAmpere{
    {0.65},
    {0.55},
    "FlashAttention-2 on an A100 (Dao 2023, section 4.1: 50-73 %, backward to 63 %)"};
constexpr AttentionEfficiency kBlackwell{kHopperForward, kHopperBackward,
                                         "taken over from Hopper: not measured"};
// Before FlashAttention-2: the middle of Dao 2023, section 1. Its instructions are those of Ampere,
// so that a Hopper gains by its SMs and clock alone (132 x 1.755 GHz to 108 x 1.41: 1.52 times an
// A100's rate); a kernel so slow does not get to the power limit, hence shares of what is
// sustained.
constexpr AttentionEfficiency kAmpereFirst{
    {0.40}, {0.30}, "FlashAttention on an A100 (Dao 2023, section 1: 30-50 %, backward 25-35 %)"};
constexpr AttentionEfficiency kHopperFirst{
    {0.28}, {0.21}, "FlashAttention on an A100, scaled by SMs and clock to an H100"};
constexpr AttentionEfficiency kVolta{{0.35}, {0.30}, "assumed: no FlashAttention-2 on Volta"};
constexpr AttentionEfficiency kCdna3{{0.40}, {0.30}, "assumed"};

void check(const Operator& op) {
  for (const std::int64_t size : {op.m, op.n, op.k, op.groups, op.batch, op.heads, op.kv_heads,
                                  op.queries, op.keys, op.head_dim, op.value_dim}) {
    if (size < 0) {
      throw Error("operator '" + printable(op.name) + "' has size " + std::to_string(size))
          .expected("sizes of at least 0");
    }
  }
  for (const double amount : {op.flops, op.bytes}) {
    if (!(amount >= 0) || !std::isfinite(amount)) {
      throw Error("operator '" + printable(op.name) + "' has " + std::to_string(amount) +
                  " operations or bytes")
          .expected("a finite number of at least 0");
    }
  }
}

double memory_seconds(const Operator& op, const GpuSpec& gpu) {
  return op.bytes / (kMemoryEfficiency * gpu.memory_bandwidth.bytes_per_second());
}

Time product_time(const Operator& op, const GpuSpec& gpu, Precision precision) {
  const GemmShape shape{op.kind == OperatorKind::kGroupedGemm ? op.groups : 1, op.m, op.n, op.k};
  if (std::min({shape.batch, shape.m, shape.n, shape.k}) == 0) {
    return {};
  }
  return std::max(gemm_time(shape, gpu, precision), gemm_efficiency(gpu.family, precision).launch +
                                                        Time::seconds(memory_seconds(op, gpu)));
}

Time fused_attention_time(const Operator& op, const GpuSpec& gpu, Precision precision) {
  if (op.flops == 0 && op.bytes == 0) {
    return {};
  }
  const AttentionWork work{
      op.flops, op.bytes,
      attention_key_flops(static_cast<double>(op.batch) * static_cast<double>(op.heads) *
                              static_cast<double>(op.queries),
                          static_cast<double>(op.head_dim) + static_cast<double>(op.value_dim),
                          op.backward),
      static_cast<double>(op.keys), op.backward};
  return attention_time(work, gpu, precision, attention_efficiency(gpu.family, op.flash_kernels));
}

/// Products, softmax and dropout one after the other; of `bytes` the latter two move what the
/// products do not. Forward the scores' product writes them and the values' one reads them;
/// backward two products read their gradient, one writes it, one reads the probabilities.
Time unfused_attention_time(const Operator& op, const GpuSpec& gpu, Precision precision) {
  if (std::min({op.batch, op.heads, op.queries, op.keys}) == 0) {
    return {};
  }
  const std::int64_t batch = op.batch * op.heads;
  const std::int64_t head = std::max<std::int64_t>(1, op.head_dim);
  const std::int64_t value = std::max<std::int64_t>(1, op.value_dim);
  Time time = gemm_time({batch, op.queries, op.keys, head}, gpu, precision) +
              gemm_time({batch, op.queries, value, op.keys}, gpu, precision);
  if (op.backward) {
    time = gemm_time({batch, op.keys, value, op.queries}, gpu, precision) +
           gemm_time({batch, op.queries, op.keys, value}, gpu, precision) +
           gemm_time({batch, op.queries, head, op.keys}, gpu, precision) +
           gemm_time({batch, op.keys, head, op.queries}, gpu, precision);
  }
  const double scores = static_cast<double>(batch) * static_cast<double>(op.queries) *
                        static_cast<double>(op.keys) * element_bytes(precision);
  Operator rest;
  rest.bytes = std::max(0.0, op.bytes - (op.backward ? 4 : 2) * scores);
  return time + kLaunch + kLaunch + Time::seconds(memory_seconds(rest, gpu));
}

Time elementwise_time(const Operator& op, const GpuSpec& gpu, Precision precision) {
  const Time memory = memory_time(op.bytes, op.memory_work, op.backward, gpu);
  if (op.flops == 0) {
    return memory;
  }
  const double rate = gemm_efficiency(gpu.family, precision).compute * peak_flops(gpu, precision);
  return std::max(memory, kLaunch + Time::seconds(op.flops / rate));
}

}  // namespace

const AttentionEfficiency& attention_efficiency(GpuFamily family, FlashKernels kernels) {
  if (kernels == FlashKernels::kFirst && family == GpuFamily::kAmpere) {
    return kAmpereFirst;
  }
  if (kernels == FlashKernels::kFirst && family == GpuFamily::kHopper) {
    return kHopperFirst;
  }
  switch (family) {
    case GpuFamily::kVolta:
      return kVolta;
    case GpuFamily::kAmpere:
      return kAmpere;
    case GpuFamily::kHopper:
      return kHopper;
    case GpuFamily::kBlackwell:
      return kBlackwell;
    case GpuFamily::kCdna3:
      break;
  }
  return kCdna3;
}

double attention_key_flops(double queries, double width, bool backward) {
  return 2.0 * queries * width * (backward ? 2.5 : 1.0);
}

Time attention_time(const AttentionWork& work, const GpuSpec& gpu, Precision precision,
                    const AttentionEfficiency& fit) {
  const AttentionPass& pass = work.backward ? fit.backward : fit.forward;
  const double seen = work.key_flops > 0 ? work.flops / work.key_flops : 0;
  const double arithmetic =
      (work.flops + pass.extra_keys * work.key_flops) / (pass.share * peak_flops(gpu, precision));
  const double memory = work.bytes / (kMemoryEfficiency * gpu.memory_bandwidth.bytes_per_second());
  const double block = pass.key_s * std::min(work.keys, 2 * seen);
  const double both =
      block == 0 ? arithmetic
                 : std::pow(std::pow(arithmetic, kHiding) + std::pow(block, kHiding), 1 / kHiding);
  return kLaunch + Time::seconds(std::max(both, memory));
}

Precision precision_of(const Operator& op, Precision job) {
  return job == Precision::kFp8 && op.element_bytes != 1 ? Precision::kBf16 : job;
}

Time operator_time(const Operator& op, const GpuSpec& gpu, Precision job) {
  check(op);
  const Precision precision = precision_of(op, job);
  switch (op.kind) {
    case OperatorKind::kGemm:
    case OperatorKind::kGroupedGemm:
      return product_time(op, gpu, precision);
    case OperatorKind::kAttention:
      return op.fused ? fused_attention_time(op, gpu, precision)
                      : unfused_attention_time(op, gpu, precision);
    case OperatorKind::kMemory:
      break;
  }
  return elementwise_time(op, gpu, precision);
}

}  // namespace lockstep
