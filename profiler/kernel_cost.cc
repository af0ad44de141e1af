#include "profiler/kernel_cost.h"

#include <cmath>

#include "base/error.h"
#include "generator/compute/gemm_efficiency.h"

namespace lockstep {
namespace {

double real(std::int64_t v) { return static_cast<double>(v); }

KernelCost cost(double flops, double bytes, double footprint) {
  if (!(footprint < 0x1p62)) {
    throw Error("an operator of more than 2^62 bytes").field("sizes");
  }
  return {flops, bytes, Bytes(static_cast<std::int64_t>(std::ceil(footprint)))};
}

KernelCost product(const Kernel& kernel, double groups, double m, double n, double k) {
  const double operand = element_bytes(kernel.precision);
  const bool weight = kernel.variant == "weight-gradient";
  const double result = weight ? 4.0 : real(activation_bytes(kernel.precision));
  const double in = operand * groups * (m + n) * k;
  const double out = result * groups * m * n;
  return cost(2 * groups * m * n * k, in + (weight ? 2 : 1) * out, in + out);
}

KernelCost attention(const Kernel& kernel) {
  const double rows =
      real(kernel.size("batch")) * real(kernel.size("heads")) * real(kernel.size("queries"));
  const double keys = real(kernel.size("keys"));
  const double width = real(kernel.size("head_dim")) + real(kernel.size("value_dim"));
  const double element = real(activation_bytes(kernel.precision));
  const double queries_outputs = element * rows * width;
  const double keys_values =
      element * real(kernel.size("batch")) * real(kernel.size("kv_heads")) * keys * width;
  const bool fused = kernel.kind == KernelKind::kAttention;
  const double seen = fused && kernel.causal ? 0.5 : 1.0;
  double flops = 2 * rows * keys * width * seen;
  double bytes = queries_outputs + keys_values;
  if (kernel.backward) {
    flops *= fused ? 2.5 : 2.0;
    bytes *= 2;
  }
  double footprint = bytes + (fused ? 4 * rows : 0);
  if (!fused) {
    // Kept: the probabilities. Backward also their gradient, which becomes the scores'.
    const double scores = element * rows * keys;
    footprint += (kernel.backward ? 2 : 1) * scores;
    bytes += (kernel.backward ? 7 : 4) * scores;
  }
  return cost(flops, bytes, footprint);
}

/// `forward`, `backward`: passes over `elements` of so many bytes, all of them held.
KernelCost passes(const Kernel& kernel, double elements, double forward, double backward) {
  const double bytes = elements * (kernel.backward ? backward : forward);
  return cost(0, bytes, bytes);
}

}  // namespace

std::int64_t activation_bytes(Precision precision) { return precision == Precision::kFp32 ? 4 : 2; }

KernelCost kernel_cost(const Kernel& kernel) {
  const auto size = [&](std::string_view name) { return real(kernel.size(name)); };
  const double e = real(activation_bytes(kernel.precision));
  switch (kernel.kind) {
    case KernelKind::kGemm:
      return product(kernel, 1, size("m"), size("n"), size("k"));
    case KernelKind::kBatchedGemm:
    case KernelKind::kGroupedGemm:
      return product(kernel, size("groups"), size("m"), size("n"), size("k"));
    case KernelKind::kAttention:
    case KernelKind::kUnfusedAttention:
      return attention(kernel);
    case KernelKind::kSoftmax:
      return passes(kernel, size("batch") * size("queries") * size("keys"), 2 * e, 3 * e);
    case KernelKind::kEmbedding: {
      // Forward the rows that are hit are read; backward their fp32 gradients are added to.
      const double out = size("rows") * size("width");
      const double table = size("vocabulary") * size("width");
      return kernel.backward ? cost(0, out * (e + 8), out * e + table * 4)
                             : cost(0, out * 2 * e, (out + table) * e);
    }
    case KernelKind::kNorm:
      return passes(kernel, size("rows") * size("width"), 2 * e, 3 * e);
    case KernelKind::kRotary:
      return passes(kernel, size("rows") * size("heads") * size("head_dim"), 2 * e, 2 * e);
    case KernelKind::kActivation:
      return kernel.variant == "swiglu"
                 ? passes(kernel, size("rows") * size("width"), 3 * e, 5 * e)
                 : passes(kernel, size("rows") * size("width"), 2 * e, 3 * e);
    case KernelKind::kResidual:
      return passes(kernel, size("rows") * size("width"), 3 * e, 3 * e);
    case KernelKind::kDropout:
      return passes(kernel, size("elements"), 2 * e + 1, 2 * e + 1);
    case KernelKind::kRouter:
      return passes(kernel, size("rows") * size("experts"), 8, 8);
    case KernelKind::kPermute:
    case KernelKind::kUnpermute: {
      const double bytes = (size("rows") + size("copies")) * size("width") * e;
      return cost(0, bytes, bytes);
    }
    case KernelKind::kCrossEntropy:
      return passes(kernel, size("rows") * size("vocabulary"), e + 4, e + 4);
    case KernelKind::kBiasGradient:
      return cost(0, size("rows") * size("width") * e, size("width") * (size("rows") * e + 4));
    case KernelKind::kAccumulate:
      return cost(0, size("elements") * (e + 8), size("elements") * (e + 4));
    case KernelKind::kAdam:
      return cost(0, size("elements") * 28, size("elements") * 16);
    case KernelKind::kScale:
      return cost(0, size("elements") * 8, size("elements") * 4);
    case KernelKind::kCast:
      return cost(0, size("elements") * (e + 1), size("elements") * (e + 1));
    case KernelKind::kCopy:
      return kernel.variant == "device" ? cost(0, 2 * size("bytes"), 2 * size("bytes"))
                                        : cost(0, size("bytes"), size("bytes"));
    case KernelKind::kStream:
      break;
  }
  return cost(0, size("bytes"), size("bytes"));
}

AttentionWork attention_work(const Kernel& kernel) {
  const KernelCost cost = kernel_cost(kernel);
  const double queries =
      real(kernel.size("batch")) * real(kernel.size("heads")) * real(kernel.size("queries"));
  const double width = real(kernel.size("head_dim")) + real(kernel.size("value_dim"));
  return {cost.flops, cost.bytes, attention_key_flops(queries, width, kernel.backward),
          real(kernel.size("keys")), kernel.backward};
}

}  // namespace lockstep
