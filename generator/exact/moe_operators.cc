#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/operator_parts.h"

namespace lockstep {
namespace {

constexpr double kMaxRows = 0x1p38;

}  // namespace

std::int64_t dispatched_rows(const Module& module, const RankSizes& sizes) {
  const double copies = product_of({sizes.local_tokens, module.topk}) * sizes.routed;
  // Capacity is set per expert and padded; an imbalance just makes more of them.
  const auto experts = static_cast<double>(module.experts);
  const double rows = sizes.capacity ? std::ceil(copies / experts) * experts : std::ceil(copies);
  if (rows > kMaxRows) {
    throw Error(fmt::format("{:.3g} token copies go through {} on a rank", rows, module.name))
        .field("--micro_batch")
        .expected(fmt::format("at most {:.3g}", kMaxRows));
  }
  return static_cast<std::int64_t>(rows);
}

MoeOperators moe_operators(const Module& module, const RankSizes& sizes) {
  const std::string& name = module.name;
  const double element = sizes.activation;
  const std::int64_t width = module.in, tokens = sizes.local_tokens;
  const std::int64_t halves = module.gated ? 2 : 1;
  MoeOperators moe;
  moe.rows = dispatched_rows(module, sizes);
  moe.router = linear(name + ".router", tokens, width, module.experts, sizes, sizes.activation);
  const double scores = product_of({tokens, module.experts}) * 4;  // softmax and top-k in fp32
  moe.router.forward.push_back(
      memory_bound(name + ".topk forward", 2 * scores, false, 4, MemoryWork::kRouter));
  moe.router.input_grad.push_back(
      memory_bound(name + ".topk backward", 2 * scores, true, 4, MemoryWork::kRouter));
  std::swap(moe.router.input_grad.front(), moe.router.input_grad.back());
  const double moved = (product_of({tokens, width}) + product_of({moe.rows, width})) * element;
  moe.permute =
      elementwise(name + ".permute", moved, moved, sizes.activation, MemoryWork::kPermute);
  moe.unpermute =
      elementwise(name + ".unpermute", moved, moved, sizes.activation, MemoryWork::kUnpermute);

  const std::int64_t local_experts = module.experts / sizes.ep;
  const std::int64_t rows = ceil_div(moe.rows * sizes.etp, local_experts);
  const std::int64_t ffn = module.expert_ffn / sizes.etp;
  moe.expert_in =
      linear(name + ".experts.in", rows, width, halves * ffn, sizes, sizes.operand, local_experts);
  moe.expert_out =
      linear(name + ".experts.out", rows, ffn, width, sizes, sizes.operand, local_experts);
  if (module.bias) {
    const auto bias = [&](const char* what, std::int64_t out) {
      return memory_bound(name + what, product_of({rows, local_experts, out}) * element, true,
                          sizes.activation, MemoryWork::kColumnSum);
    };
    moe.expert_in.weight_grad.push_back(bias(".experts.in bias gradient", halves * ffn));
    moe.expert_out.weight_grad.push_back(bias(".experts.out bias gradient", width));
  }
  const double inner = product_of({rows, local_experts, ffn}) * element;
  const auto in = static_cast<double>(halves) * inner;
  const MemoryWork activation = module.gated ? MemoryWork::kStream : MemoryWork::kActivation;
  moe.expert_activation = elementwise(name + ".experts.activation", in + inner, 2 * in + inner,
                                      sizes.activation, activation);
  if (module.shared_ffn > 0) {
    const std::int64_t shared = module.shared_ffn / sizes.tp;
    moe.shared_in =
        linear(name + ".shared.in", sizes.tokens, width, halves * shared, sizes, sizes.operand);
    moe.shared_out =
        linear(name + ".shared.out", sizes.tokens, shared, width, sizes, sizes.operand);
    const double middle = product_of({sizes.tokens, shared}) * element;
    const auto before = static_cast<double>(halves) * middle;
    moe.shared_activation = elementwise(name + ".shared.activation", before + middle,
                                        2 * before + middle, sizes.activation, activation);
  }
  return moe;
}

}  // namespace lockstep
