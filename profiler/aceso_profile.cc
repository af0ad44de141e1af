#include "profiler/aceso_profile.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "profiler/kernel_cost.h"

namespace lockstep {
namespace {

struct Size {
  std::string_view name;
  std::int64_t hidden, ffn, heads;
};

// Aceso's own (specification of the planners, section 2).
constexpr std::array<Size, 6> kSizes{{{"350M", 1024, 4096, 16},
                                      {"1_3B", 2048, 8192, 32},
                                      {"2_6B", 2560, 10240, 32},
                                      {"6_7B", 4096, 16384, 32},
                                      {"13B", 5120, 20480, 40},
                                      {"scale-layer", 512, 2048, 8}}};
constexpr std::int64_t kSequence = 2048, kVocabulary = 51200;
constexpr Precision kType = Precision::kFp16;
constexpr double kElement = 2, kMask = 1, kMega = 1024.0 * 1024.0;

const Size& size_named(const std::string& name) {
  const auto found = std::ranges::find(kSizes, name, &Size::name);
  if (found == kSizes.end()) {
    std::vector<std::string_view> names;
    names.reserve(kSizes.size());
    for (const Size& size : kSizes) {
      names.push_back(size.name);
    }
    throw Error(fmt::format("gpt has no size '{}'", printable(name)))
        .field("--aceso-size")
        .expected(join(names, ", "));
  }
  return *found;
}

/// A linear layer's three products: rows x in -> rows x out.
void linear(AcesoOp& op, std::int64_t rows, std::int64_t in, std::int64_t out) {
  op.forward = {make_kernel(KernelKind::kGemm, kType, {rows, out, in}, false, "forward")};
  op.backward = {make_kernel(KernelKind::kGemm, kType, {rows, in, out}, false, "input-gradient"),
                 make_kernel(KernelKind::kGemm, kType, {out, in, rows}, false, "weight-gradient")};
  op.weights = kElement * static_cast<double>(in) * static_cast<double>(out);
}

/// One kernel each way.
void both(AcesoOp& op, Kernel kernel) {
  op.forward = {kernel};
  kernel.backward = true;
  op.backward = {kernel};
}

}  // namespace

std::vector<AcesoOp> aceso_ops(const AcesoGpt& gpt) {
  const Size& size = size_named(gpt.size);
  const std::int64_t h = size.hidden, b = gpt.micro_batch, t = gpt.tp, s = kSequence;
  if (t < 1 || b < 1 || size.heads % t != 0 || kVocabulary % t != 0) {
    throw Error(fmt::format("{} heads do not divide by {}", size.heads, t))
        .field("--aceso-tp")
        .expected("a divisor of the heads");
  }
  const std::int64_t rows = s * b, heads = size.heads / t, head = h / size.heads;
  const auto real = [](std::int64_t v) { return static_cast<double>(v); };
  const double x = kElement * real(rows) * real(h);  // the residual stream
  const double part = x / real(t), wide = x * real(size.ffn) / real(h) / real(t);
  const double scores = kElement * real(b * heads) * real(s) * real(s);
  const double masked = scores * (1 + kMask / kElement);
  const bool column = gpt.algorithm == 0;
  const auto cut_in = [&](bool cut, std::int64_t v) { return cut ? v / t : v; };
  std::vector<AcesoOp> ops;
  const auto op = [&](const char* name, double in, double out, double kept) -> AcesoOp& {
    ops.push_back({name, {}, {}, in, out, 0, kept});
    return ops.back();
  };
  const auto norm = [&](const char* name, double out) {
    both(op(name, x, out, x), make_kernel(KernelKind::kNorm, kType, {rows, h}, false, "layer"));
    ops.back().weights = kElement * 2 * real(h);
  };
  const auto dropped = [&](const char* name) {
    // Dropout, then the sum with the residual.
    AcesoOp& it = op(name, 2 * x, x, x * (1 + kMask / kElement));
    it.forward = {make_kernel(KernelKind::kDropout, kType, {rows * h}),
                  make_kernel(KernelKind::kResidual, kType, {rows, h})};
    it.backward = {make_kernel(KernelKind::kDropout, kType, {rows * h}, true)};
  };
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k, const char* variant) {
    return make_kernel(KernelKind::kBatchedGemm, kType, {b * heads, m, n, k}, false, variant);
  };

  AcesoOp& embedding = op("encoder-embedding", 8 * real(rows), x, x * (1 + kMask / kElement));
  both(embedding, make_kernel(KernelKind::kEmbedding, kType, {rows, h, kVocabulary / t}));
  embedding.weights = kElement * real(h) * real(kVocabulary / t + s);
  norm("enc-1st-layernorm", 2 * x);
  linear(op("enc-attention-qkv", 2 * x, 3 * part + x, 3 * part), rows, cut_in(!column, h),
         cut_in(column, 3 * h));
  AcesoOp& score = op("enc-attention-score", 3 * part + x, scores + part + x, scores);
  score.forward = {product(s, s, head, "forward")};
  score.backward = {product(s, head, s, "input-gradient"), product(s, head, s, "input-gradient")};
  Kernel softmax = make_kernel(KernelKind::kSoftmax, kType, {b * heads, s, s});
  softmax.causal = true;
  both(op("enc-attention-softmax", scores + part + x, scores + part + x, scores), softmax);
  both(op("enc-attention-dropout", scores + part + x, scores + part + x, masked),
       make_kernel(KernelKind::kDropout, kType, {b * heads * s * s}));
  AcesoOp& context = op("enc-attention-context", scores + part + x, part + x, part);
  context.forward = {product(s, head, s, "input-gradient")};
  context.backward = {product(s, s, head, "forward"), product(s, head, s, "input-gradient")};
  linear(op("enc-attention-dense", part + x, 2 * x, x), rows, cut_in(column, h),
         cut_in(!column, h));
  dropped("enc-post-attention-dropout");
  norm("enc-2nd-layernorm", 2 * x);
  linear(op("enc-MLP-GEMM-1", 2 * x, wide + x, wide), rows, cut_in(!column, h),
         cut_in(column, size.ffn));
  both(op("enc-MLP-gelu", wide + x, wide + x, wide),
       make_kernel(KernelKind::kActivation, kType, {rows, size.ffn / t}, false, "gelu"));
  linear(op("enc-MLP-GEMM-2", wide + x, 2 * x, x), rows, cut_in(column, size.ffn),
         cut_in(!column, h));
  dropped("enc-post-MLP-dropout");
  norm("final-layernorm", x);
  const std::int64_t share = kVocabulary / t;
  AcesoOp& head_op = op("gpt-post-process", x, 0, real(rows) * real(share) * (kElement + 4));
  linear(head_op, rows, h, share);
  Kernel loss = make_kernel(KernelKind::kCrossEntropy, kType, {rows, share});
  head_op.forward.push_back(loss);
  loss.backward = true;
  head_op.backward.push_back(loss);
  return ops;
}

std::string aceso_csv(const AcesoGpt& gpt, const Measurements& measurements) {
  std::string text =
      "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,"
      "fwd_reserved,bwd_reserved\n";
  for (const AcesoOp& op : aceso_ops(gpt)) {
    const auto sums = [&](const std::vector<Kernel>& kernels) {
      double us = 0, reserved = 0;
      for (const Kernel& kernel : kernels) {
        us += 1e6 * measurements.median_s(kernel);
        const double beyond = static_cast<double>(measurements.of(kernel).peak.count()) -
                              static_cast<double>(kernel_cost(kernel).footprint.count());
        reserved = std::max(reserved, beyond);
      }
      return std::pair(us, reserved);
    };
    const auto [forward, forward_reserved] = sums(op.forward);
    const auto [backward, backward_reserved] = sums(op.backward);
    text +=
        fmt::format("{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f}\n", op.name,
                    forward, backward, op.input / kMega, op.output / kMega, op.weights / kMega,
                    op.activations / kMega, forward_reserved / kMega, backward_reserved / kMega);
  }
  return text;
}

std::string aceso_file_name(const AcesoGpt& gpt) {
  return fmt::format("gpt_{}_mbs{}_tp{}_algo{}.csv", gpt.size, gpt.micro_batch, gpt.tp,
                     gpt.algorithm);
}

}  // namespace lockstep
