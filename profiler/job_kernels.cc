#include "profiler/job_kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "generator/compute/roofline.h"
#include "generator/exact/operator_parts.h"
#include "generator/exact/operators.h"
#include "generator/exact/pass.h"
#include "generator/exact/rank_sizes.h"

namespace lockstep {
namespace {

/// fp8 is for the operands of products alone.
Precision activation_precision(Precision job) {
  return job == Precision::kFp8 ? Precision::kBf16 : job;
}

std::string_view product_variant(const Operator& op) {
  return op.name.ends_with("weight gradient")  ? "weight-gradient"
         : op.name.ends_with("input gradient") ? "input-gradient"
                                               : "forward";
}

std::int64_t whole_bytes(const Operator& op) {
  return std::max<std::int64_t>(1, std::llround(op.bytes));
}

PassOptions pass_options(const Job& job) {
  PassOptions options;
  options.sizes = rank_sizes(job);
  options.context_comm = job.context_comm;
  options.recompute = job.recompute;
  options.product_overlap = job.product_overlap;
  return options;
}

}  // namespace

bool has_work(const Operator& op) {
  switch (op.kind) {
    case OperatorKind::kGemm:
    case OperatorKind::kGroupedGemm:
      return std::min({op.m, op.n, op.k, op.groups}) > 0;
    case OperatorKind::kAttention:
      return std::min({op.batch, op.heads, op.kv_heads, op.queries, op.keys, op.head_dim,
                       op.value_dim}) > 0;
    case OperatorKind::kMemory:
      break;
  }
  return op.bytes >= 0.5;
}

JobKernels::JobKernels(const Job& job) : job_(job) {
  check_job(job_);
  add_modules(job_.model.before);
  for (const LayerBlock& block : job_.model.blocks) {
    add_modules(block.modules);
  }
  add_modules(job_.model.after);
}

void JobKernels::add_both(const std::string& name, const Kernel& kernel) {
  Kernel back = kernel;
  back.backward = traits_of(kernel.kind).backward;
  memory_bound_.emplace(name + " forward", kernel);
  memory_bound_.emplace(name + " backward", back);
}

void JobKernels::add_modules(std::span<const Module> modules) {
  const RankSizes sizes = rank_sizes(job_);
  const Precision precision = activation_precision(job_.precision);
  const std::vector<Region> regions = regions_of(modules);
  const auto residual = [&](const Module& module, std::int64_t width) {
    add_both(module.name + " residual",
             make_kernel(KernelKind::kResidual, precision, {sizes.local_tokens, width}));
  };
  const auto bias = [&](const Module& module, std::int64_t rows, std::int64_t width) {
    memory_bound_.emplace(module.name + " bias gradient",
                          make_kernel(KernelKind::kBiasGradient, precision, {rows, width}));
  };
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const Module& module = modules[i];
    const std::int64_t rows = rows_in(regions[i], sizes);
    switch (module.kind) {
      case ModuleKind::kEmbedding:
        add_both(module.name,
                 make_kernel(KernelKind::kEmbedding, precision,
                             {sizes.tokens, module.out,
                              module.whole ? module.in : ceil_div(module.in, sizes.tp)}));
        break;
      case ModuleKind::kNorm: {
        const std::int64_t width = norm_width_in(regions[i], module, sizes);
        const std::int64_t group = std::min(module.in, width);  // a head's, if by head
        add_both(module.name,
                 make_kernel(KernelKind::kNorm, precision, {rows * ceil_div(width, group), group},
                             false, module.rms ? "rms" : "layer"));
        break;
      }
      case ModuleKind::kActivation: {
        const bool gated = module.in == 2 * module.out;
        if (gated ||
            computes_tangents(module)) {  // others are a copy with arithmetic that costs nothing
          add_both(module.name, make_kernel(KernelKind::kActivation, precision,
                                            {rows, width_in(regions[i], module.out, sizes)}, false,
                                            gated ? "swiglu" : "gelu"));
        }
        break;
      }
      case ModuleKind::kColumnLinear:
        bias(module, sizes.tokens, module.out / sizes.tp);
        break;
      case ModuleKind::kRowLinear:
        bias(module, rows_in(Region::kSequence, sizes), module.out);
        if (!module.parallel) {
          residual(module, module.out);
        }
        break;
      case ModuleKind::kPlainLinear:
        bias(module, rows, module.out);
        break;
      case ModuleKind::kHead:
        add_both("cross entropy", make_kernel(KernelKind::kCrossEntropy, precision,
                                              {sizes.tokens, ceil_div(module.out, sizes.tp)}));
        break;
      case ModuleKind::kMoe:
        add_moe(module);
        residual(module, module.in);
        break;
      case ModuleKind::kAttention:
      case ModuleKind::kCustom:
        break;
    }
  }
}

void JobKernels::add_moe(const Module& module) {
  const RankSizes sizes = rank_sizes(job_);
  const Precision precision = activation_precision(job_.precision);
  const std::int64_t copies = std::max<std::int64_t>(1, dispatched_rows(module, sizes));
  const std::string_view activation = module.gated ? "swiglu" : "gelu";
  add_both(module.name + ".topk", make_kernel(KernelKind::kRouter, precision,
                                              {sizes.local_tokens, module.experts, module.topk}));
  add_both(module.name + ".permute",
           make_kernel(KernelKind::kPermute, precision, {sizes.local_tokens, copies, module.in}));
  add_both(module.name + ".unpermute",
           make_kernel(KernelKind::kUnpermute, precision, {sizes.local_tokens, copies, module.in}));
  const std::int64_t experts = module.experts / sizes.ep;
  const std::int64_t rows = ceil_div(copies * sizes.etp, experts);
  add_both(module.name + ".experts.activation",
           make_kernel(KernelKind::kActivation, precision,
                       {rows * experts, module.expert_ffn / sizes.etp}, false, activation));
  if (module.bias) {
    const std::int64_t halves = module.gated ? 2 : 1;
    for (const auto& [side, width] :
         {std::pair{".experts.in", halves * module.expert_ffn / sizes.etp},
          std::pair{".experts.out", module.in}}) {
      memory_bound_.emplace(
          module.name + side + " bias gradient",
          make_kernel(KernelKind::kBiasGradient, precision, {rows * experts, width}));
    }
  }
  if (module.shared_ffn > 0) {
    add_both(module.name + ".shared.activation",
             make_kernel(KernelKind::kActivation, precision,
                         {sizes.tokens, module.shared_ffn / sizes.tp}, false, activation));
  }
}

Kernel JobKernels::of(const Operator& op) const {
  const Precision precision = precision_of(op, job_.precision);
  switch (op.kind) {
    case OperatorKind::kGemm:
      return make_kernel(KernelKind::kGemm, precision, {op.m, op.n, op.k}, false,
                         product_variant(op));
    case OperatorKind::kGroupedGemm:
      return make_kernel(KernelKind::kGroupedGemm, precision, {op.groups, op.m, op.n, op.k}, false,
                         product_variant(op));
    case OperatorKind::kAttention: {
      Kernel kernel = make_kernel(
          op.fused ? KernelKind::kAttention : KernelKind::kUnfusedAttention, precision,
          {op.batch, op.heads, op.kv_heads, op.queries, op.keys, op.head_dim, op.value_dim},
          op.backward);
      kernel.causal = op.causal;
      return kernel;
    }
    case OperatorKind::kMemory:
      break;
  }
  if (const auto known = memory_bound_.find(op.name); known != memory_bound_.end()) {
    return known->second;
  }
  if (op.name == "optimizer") {
    const RankSizes sizes = rank_sizes(job_);
    const double each = sizes.gradient + 24;
    return make_kernel(KernelKind::kAdam, activation_precision(job_.precision),
                       {std::max<std::int64_t>(1, std::llround(op.bytes / each))});
  }
  return make_kernel(KernelKind::kStream, Precision::kBf16, {whole_bytes(op)}, false,
                     op.name == "gradient norm"    ? "read"
                     : op.name == "gradient reset" ? "write"
                                                   : "copy");
}

namespace {

std::vector<Kernel> kernels_of(const Pass& pass, const JobKernels& kernels) {
  std::vector<Kernel> list;
  for (const PassStep& step : pass.steps) {
    if (step.transfer.comm == CommType::kNone && has_work(step.op)) {
      list.push_back(kernels.of(step.op));
    }
  }
  return list;
}

}  // namespace

std::vector<Kernel> JobKernels::forward(std::span<const Module> modules) const {
  return kernels_of(forward_pass(modules, pass_options(job_)), *this);
}

std::vector<Kernel> JobKernels::backward(std::span<const Module> modules) const {
  return kernels_of(backward_pass(modules, pass_options(job_)), *this);
}

}  // namespace lockstep
