#include "generator/exact/operators.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace lockstep {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double product(std::initializer_list<std::int64_t> factors) {
  double result = 1;
  for (const std::int64_t factor : factors) {
    result *= static_cast<double>(factor);
  }
  return result;
}

/// The sizes of a matrix product, `groups` of them.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, groups = 1;
};

Operator gemm(std::string name, const Gemm& size, const RankSizes& sizes, int operand) {
  Operator op;
  op.name = std::move(name);
  op.kind = size.groups > 1 ? OperatorKind::kGroupedGemm : OperatorKind::kGemm;
  op.m = size.m;
  op.n = size.n;
  op.k = size.k;
  op.groups = size.groups;
  op.flops = 2 * product({size.m, size.n, size.k, size.groups});
  op.bytes =
      static_cast<double>(size.groups) *
      (static_cast<double>(operand) * (product({size.m, size.k}) + product({size.k, size.n})) +
       static_cast<double>(sizes.activation) * product({size.m, size.n}));
  op.element_bytes = operand;
  return op;
}

/// rows x in -> rows x out, with both gradients. The weight gradient is accumulated in the
/// gradients' precision: read and written.
ModuleOperators linear(const std::string& name, std::int64_t rows, std::int64_t in,
                       std::int64_t out, const RankSizes& sizes, int operand,
                       std::int64_t groups = 1) {
  ModuleOperators ops;
  ops.forward = {gemm(name + " forward", {rows, out, in, groups}, sizes, operand)};
  ops.input_grad = {gemm(name + " input gradient", {rows, in, out, groups}, sizes, operand)};
  Operator weight = gemm(name + " weight gradient", {out, in, rows, groups}, sizes, operand);
  weight.bytes += product({groups, out, in}) * (2.0 * sizes.gradient - sizes.activation);
  ops.weight_grad = {std::move(weight)};
  for (auto* backward : {&ops.input_grad, &ops.weight_grad}) {
    backward->front().backward = true;
  }
  return ops;
}

Operator memory(std::string name, double bytes, bool backward, int element_bytes) {
  Operator op;
  op.name = std::move(name);
  op.bytes = bytes;
  op.backward = backward;
  op.element_bytes = element_bytes;
  return op;
}

/// Bound by memory both ways.
ModuleOperators elementwise(const std::string& name, double forward, double backward,
                            int element_bytes) {
  ModuleOperators ops;
  ops.forward = {memory(name + " forward", forward, false, element_bytes)};
  ops.input_grad = {memory(name + " backward", backward, true, element_bytes)};
  return ops;
}

ModuleOperators attention(const Module& module, const RankSizes& sizes, std::int64_t parts) {
  Operator op;
  op.name = module.name + " forward";
  op.kind = OperatorKind::kAttention;
  op.batch = sizes.micro_batch;
  op.heads = module.heads / sizes.tp;
  op.kv_heads = std::max<std::int64_t>(1, module.kv_heads / sizes.tp);
  op.queries = sizes.seq / sizes.cp;
  op.keys = sizes.seq / parts;
  op.head_dim = module.head_dim;
  op.value_dim = module.value_dim;
  op.causal = module.causal;
  op.element_bytes = sizes.activation;
  const auto seq = static_cast<double>(sizes.seq);
  const double window = module.window > 0 ? std::min(static_cast<double>(module.window), seq) : seq;
  // Mean keys a query sees: all, half (causal), or of a causal window w: w - w^2 / (2 seq). Only
  // flash attention leaves the others out.
  const double keys = !sizes.flash_attention ? seq
                      : module.causal        ? window - window * window / (2 * seq)
                                             : window;
  const double scores =
      product({op.batch, op.heads, op.queries}) * keys / static_cast<double>(parts);
  op.flops = 2 * scores * static_cast<double>(module.head_dim + module.value_dim);
  const double element = sizes.activation;
  const double q = product({op.batch, op.queries, op.heads, module.head_dim});
  const double out = product({op.batch, op.queries, op.heads, module.value_dim});
  const double kv = product({op.batch, op.keys, op.kv_heads, module.head_dim + module.value_dim});
  const double dropout = sizes.dropout ? 2.5 : 0;
  const double passes = sizes.flash_attention ? 0 : 4 + dropout;
  op.bytes = element * (q + kv + out + passes * scores);
  ModuleOperators ops;
  ops.forward = {op};
  const double back = sizes.flash_attention ? 0 : 7 + dropout;
  op.name = module.name + " backward";
  op.backward = true;
  op.flops *= sizes.flash_attention ? 2.5 : 2.0;
  op.bytes = element * (2 * q + 2 * kv + 2 * out + back * scores);
  ops.input_grad = {op};
  return ops;
}

ModuleOperators head(const Module& module, const RankSizes& sizes) {
  const std::int64_t share = ceil_div(module.out, sizes.tp);
  ModuleOperators ops =
      linear(module.name, sizes.tokens, module.in, share, sizes, sizes.activation);
  const double logits = product({sizes.tokens, share});
  const ModuleOperators loss = elementwise("cross entropy", logits * (sizes.activation + 4),
                                           logits * (sizes.activation + 4), 4);
  ops.forward.push_back(loss.forward.front());
  ops.input_grad.push_back(loss.input_grad.front());
  std::swap(ops.input_grad.front(), ops.input_grad.back());
  return ops;
}

ModuleOperators custom(const Module& module, const RankSizes& sizes, Region region) {
  const double rows = static_cast<double>(rows_in(region, sizes)) /
                      (region == Region::kTensor ? static_cast<double>(sizes.tp) : 1.0);
  ModuleOperators ops = elementwise(module.name, module.custom_bytes * rows,
                                    2 * module.custom_bytes * rows, sizes.activation);
  ops.forward.front().flops = module.custom_flops * rows;
  ops.input_grad.front().flops = 2 * module.custom_flops * rows;
  return ops;
}

}  // namespace

std::int64_t rows_in(Region region, const RankSizes& sizes) {
  return region == Region::kTensor ? sizes.tokens : sizes.local_tokens;
}

std::int64_t width_in(Region region, std::int64_t width, const RankSizes& sizes) {
  return region == Region::kTensor ? ceil_div(width, sizes.tp) : width;
}

std::vector<Region> regions_of(std::span<const Module> modules) {
  std::vector<Region> regions;
  Region region = Region::kSequence;
  for (const Module& module : modules) {
    switch (module.kind) {
      case ModuleKind::kColumnLinear:
      case ModuleKind::kHead:
        regions.push_back(Region::kSequence);
        region = Region::kTensor;
        continue;
      case ModuleKind::kRowLinear:
        regions.push_back(Region::kTensor);
        region = Region::kSequence;
        continue;
      case ModuleKind::kPlainLinear:
      case ModuleKind::kMoe:
      case ModuleKind::kEmbedding:
        region = Region::kSequence;
        break;
      case ModuleKind::kAttention:
        region = Region::kTensor;
        break;
      default:
        break;
    }
    regions.push_back(region);
  }
  return regions;
}

ModuleOperators operators_of(const Module& module, const RankSizes& sizes, Region region,
                             std::int64_t parts) {
  const std::int64_t rows = rows_in(region, sizes);
  const double element = sizes.activation;
  switch (module.kind) {
    case ModuleKind::kEmbedding: {
      const double output = product({sizes.tokens, module.out});
      ModuleOperators ops =
          elementwise(module.name, 2 * output * element, output * (element + 2.0 * sizes.gradient),
                      sizes.activation);
      return ops;
    }
    case ModuleKind::kColumnLinear:
      return linear(module.name, sizes.tokens, module.in, module.out / sizes.tp, sizes,
                    sizes.operand);
    case ModuleKind::kRowLinear:
      return linear(module.name, sizes.tokens, module.in / sizes.tp, module.out, sizes,
                    sizes.operand);
    case ModuleKind::kPlainLinear:
      return linear(module.name, rows, module.in, module.out, sizes, sizes.operand);
    case ModuleKind::kHead:
      return head(module, sizes);
    case ModuleKind::kNorm: {
      const double elements = product({rows, width_in(region, module.out, sizes)}) * element;
      return elementwise(module.name, 2 * elements, 3 * elements, sizes.activation);
    }
    case ModuleKind::kAttention:
      return attention(module, sizes, parts);
    case ModuleKind::kActivation: {
      const double in = product({rows, width_in(region, module.in, sizes)}) * element;
      const double out = product({rows, width_in(region, module.out, sizes)}) * element;
      return elementwise(module.name, in + out, 2 * in + out, sizes.activation);
    }
    case ModuleKind::kCustom:
      return custom(module, sizes, region);
    case ModuleKind::kMoe:
      break;
  }
  return {};
}

std::int64_t dispatched_rows(const Module& module, const RankSizes& sizes) {
  const double copies = product({sizes.local_tokens, module.topk}) * sizes.routed;
  // Capacity is set per expert and padded; an imbalance just makes more of them.
  const auto experts = static_cast<double>(module.experts);
  return static_cast<std::int64_t>(sizes.capacity ? std::ceil(copies / experts) * experts
                                                  : std::ceil(copies));
}

MoeOperators moe_operators(const Module& module, const RankSizes& sizes) {
  const std::string& name = module.name;
  const double element = sizes.activation;
  const std::int64_t width = module.in, tokens = sizes.local_tokens;
  const std::int64_t halves = module.gated ? 2 : 1;
  MoeOperators moe;
  moe.rows = dispatched_rows(module, sizes);
  moe.router = linear(name + ".router", tokens, width, module.experts, sizes, sizes.activation);
  const double scores = product({tokens, module.experts}) * 4;  // softmax and top-k in fp32
  moe.router.forward.push_back(memory(name + ".topk forward", 2 * scores, false, 4));
  moe.router.input_grad.push_back(memory(name + ".topk backward", 2 * scores, true, 4));
  std::swap(moe.router.input_grad.front(), moe.router.input_grad.back());
  const double moved = (product({tokens, width}) + product({moe.rows, width})) * element;
  moe.permute = elementwise(name + ".permute", moved, moved, sizes.activation);
  moe.unpermute = elementwise(name + ".unpermute", moved, moved, sizes.activation);

  const std::int64_t local_experts = module.experts / sizes.ep;
  const std::int64_t rows = ceil_div(moe.rows * sizes.etp, local_experts);
  const std::int64_t ffn = module.expert_ffn / sizes.etp;
  moe.expert_in =
      linear(name + ".experts.in", rows, width, halves * ffn, sizes, sizes.operand, local_experts);
  moe.expert_out =
      linear(name + ".experts.out", rows, ffn, width, sizes, sizes.operand, local_experts);
  const double inner = product({rows, local_experts, ffn}) * element;
  const auto in = static_cast<double>(halves) * inner;
  moe.expert_activation =
      elementwise(name + ".experts.activation", in + inner, 2 * in + inner, sizes.activation);
  if (module.shared_ffn > 0) {
    const std::int64_t shared = module.shared_ffn / sizes.tp;
    moe.shared_in =
        linear(name + ".shared.in", sizes.tokens, width, halves * shared, sizes, sizes.operand);
    moe.shared_out =
        linear(name + ".shared.out", sizes.tokens, shared, width, sizes, sizes.operand);
    const double middle = product({sizes.tokens, shared}) * element;
    const auto before = static_cast<double>(halves) * middle;
    moe.shared_activation = elementwise(name + ".shared.activation", before + middle,
                                        2 * before + middle, sizes.activation);
  }
  return moe;
}

ParameterCount parameters_of(const Module& module, const RankSizes& sizes) {
  ParameterCount count;
  if (module.shared) {
    count.dense = module.bias ? ceil_div(module.out, sizes.tp) : 0;
    return count;
  }
  const std::int64_t in = module.in, out = module.out;
  switch (module.kind) {
    case ModuleKind::kEmbedding:
      count.dense = ceil_div(in, sizes.tp) * out;
      break;
    case ModuleKind::kHead:
      count.dense = ceil_div(out, sizes.tp) * (in + (module.bias ? 1 : 0));
      break;
    case ModuleKind::kColumnLinear:
      count.dense = out / sizes.tp * (in + (module.bias ? 1 : 0));
      break;
    case ModuleKind::kRowLinear:
      count.replicated = module.bias ? out : 0;
      count.dense = in / sizes.tp * out + count.replicated;
      break;
    case ModuleKind::kPlainLinear:
      count.dense = count.replicated = out * (in + (module.bias ? 1 : 0));
      break;
    case ModuleKind::kNorm:
      count.dense = count.replicated = module.rms ? in : 2 * in;
      break;
    case ModuleKind::kMoe: {
      const std::int64_t matrices = module.gated ? 3 : 2;
      count.replicated = in * module.experts;
      count.dense = count.replicated + matrices * in * (module.shared_ffn / sizes.tp);
      count.expert = module.experts / sizes.ep * matrices * in * (module.expert_ffn / sizes.etp);
      break;
    }
    case ModuleKind::kCustom:
      count.dense = count.replicated = module.custom_parameters;
      break;
    case ModuleKind::kAttention:
    case ModuleKind::kActivation:
      break;
  }
  return count;
}

}  // namespace lockstep
