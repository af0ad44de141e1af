#include "generator/exact/operators.h"

#include <algorithm>
#include <utility>

#include "generator/count.h"
#include "generator/exact/operator_parts.h"

namespace lockstep {
namespace {

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
  op.fused = sizes.flash_attention;
  op.element_bytes = sizes.activation;
  const auto seq = static_cast<double>(sizes.seq);
  const double window = module.window > 0 ? std::min(static_cast<double>(module.window), seq) : seq;
  // Mean keys a query sees: all, half (causal), or of a causal window w: w - w^2 / (2 seq). Only
  // flash attention leaves the others out.
  const double keys = !sizes.flash_attention ? seq
                      : module.causal        ? window - window * window / (2 * seq)
                                             : window;
  const double scores =
      product_of({op.batch, op.heads, op.queries}) * keys / static_cast<double>(parts);
  op.flops = 2 * scores * static_cast<double>(module.head_dim + module.value_dim);
  const double element = sizes.activation;
  const double q = product_of({op.batch, op.queries, op.heads, module.head_dim});
  const double out = product_of({op.batch, op.queries, op.heads, module.value_dim});
  const double kv =
      product_of({op.batch, op.keys, op.kv_heads, module.head_dim + module.value_dim});
  const double dropout = sizes.dropout ? 2.5 : 0;
  const double passes = sizes.flash_attention ? 0 : 4 + dropout;
  // The heads' outputs are put side by side again, and their gradients apart.
  const double copies = sizes.flash_attention ? 0 : 2;
  op.bytes = element * (q + kv + out + copies * out + passes * scores);
  ModuleOperators ops;
  ops.forward = {op};
  const double back = sizes.flash_attention ? 0 : 7 + dropout;
  op.name = module.name + " backward";
  op.backward = true;
  op.flops *= sizes.flash_attention ? 2.5 : 2.0;
  op.bytes = element * (2 * q + 2 * kv + 2 * out + copies * (q + kv + out) + back * scores);
  ops.input_grad = {op};
  return ops;
}

/// A bias adds nothing to the product; its gradient is the sum of the output's gradients, which
/// reads them once more.
ModuleOperators with_bias(const Module& module, std::int64_t rows, std::int64_t width,
                          const RankSizes& sizes, ModuleOperators ops) {
  if (module.bias) {
    ops.weight_grad.push_back(memory_bound(module.name + " bias gradient",
                                           product_of({rows, width}) * sizes.activation, true,
                                           sizes.activation, MemoryWork::kColumnSum));
  }
  return ops;
}

ModuleOperators head(const Module& module, const RankSizes& sizes) {
  const std::int64_t share = ceil_div(module.out, sizes.tp);
  ModuleOperators ops =
      linear(module.name, sizes.tokens, module.in, share, sizes, sizes.activation);
  const double logits = product_of({sizes.tokens, share});
  const ModuleOperators loss = elementwise("cross entropy", logits * (sizes.activation + 4),
                                           logits * (sizes.activation + 4), 4, MemoryWork::kLoss);
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

std::int64_t norm_width_in(Region region, const Module& norm, const RankSizes& sizes) {
  const std::int64_t width = width_in(region, norm.out, sizes);
  return norm.in < norm.out ? std::max(width, norm.in) : width;
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
      const double output = product_of({sizes.tokens, module.out});
      ModuleOperators ops =
          elementwise(module.name, 2 * output * element, output * (element + 2.0 * sizes.gradient),
                      sizes.activation, MemoryWork::kEmbedding);
      return ops;
    }
    case ModuleKind::kColumnLinear:
      return with_bias(module, sizes.tokens, module.out / sizes.tp, sizes,
                       linear(module.name, sizes.tokens, module.in, module.out / sizes.tp, sizes,
                              sizes.operand));
    case ModuleKind::kRowLinear:
      return with_bias(module, rows_in(Region::kSequence, sizes), module.out, sizes,
                       linear(module.name, sizes.tokens, module.in / sizes.tp, module.out, sizes,
                              sizes.operand));
    case ModuleKind::kPlainLinear:
      return with_bias(module, rows, module.out, sizes,
                       linear(module.name, rows, module.in, module.out, sizes, sizes.operand));
    case ModuleKind::kHead:
      return head(module, sizes);
    case ModuleKind::kNorm: {
      const double elements = product_of({rows, norm_width_in(region, module, sizes)}) * element;
      return elementwise(module.name, 2 * elements, 3 * elements, sizes.activation,
                         module.rms ? MemoryWork::kRmsNorm : MemoryWork::kLayerNorm);
    }
    case ModuleKind::kAttention:
      return attention(module, sizes, parts);
    case ModuleKind::kActivation: {
      const double in = product_of({rows, width_in(region, module.in, sizes)}) * element;
      const double out = product_of({rows, width_in(region, module.out, sizes)}) * element;
      return elementwise(module.name, in + out, 2 * in + out, sizes.activation,
                         computes_tangents(module) ? MemoryWork::kActivation : MemoryWork::kStream);
    }
    case ModuleKind::kCustom:
      return custom(module, sizes, region);
    case ModuleKind::kMoe:
      break;
  }
  return {};
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
      count.replicated = module.whole ? (Count(in) * out).value : 0;
      count.dense = module.whole ? count.replicated : ceil_div(in, sizes.tp) * out;
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
      // The output's bias is whole on every rank of an expert.
      const auto mlp = [&](std::int64_t width) {
        return Count(matrices) * in * width + (module.bias ? (matrices - 1) * width + in : 0);
      };
      count.replicated = (Count(in + (module.router_bias ? 1 : 0)) * module.experts).value;
      count.dense = count.replicated;
      if (module.shared_ffn > 0) {
        count.dense = (mlp(module.shared_ffn / sizes.tp) + count.replicated).value;
      }
      count.expert = (mlp(module.expert_ffn / sizes.etp) * (module.experts / sizes.ep)).value;
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
