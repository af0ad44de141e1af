#include "generator/exact/model_flops.h"

#include <span>

#include "generator/count.h"
#include "generator/exact/operators.h"
#include "generator/exact/rank_sizes.h"

namespace lockstep {
namespace {

bool is_product(const Operator& op) {
  return op.kind == OperatorKind::kGemm || op.kind == OperatorKind::kGroupedGemm;
}

double forward(const ModuleOperators& operators) {
  double flops = 0;
  for (const Operator& each : operators.forward) {
    flops += each.kind == OperatorKind::kMemory ? 0 : flops_of(each);
  }
  return flops;
}

double forward(std::span<const Module> modules, const RankSizes& sizes) {
  const std::vector<Region> regions = regions_of(modules);
  double flops = 0;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    if (modules[i].kind != ModuleKind::kMoe) {
      flops += forward(operators_of(modules[i], sizes, regions[i]));
      continue;
    }
    // Experts are priced with equally many whole rows each; the model needs its tokens' alone.
    const MoeOperators moe = moe_operators(modules[i], sizes);
    const double whole = static_cast<double>(round_up(moe.rows, modules[i].experts).value);
    flops += (forward(moe.expert_in) + forward(moe.expert_out)) *
                 (static_cast<double>(moe.rows) / whole) +
             forward(moe.router) + forward(moe.shared_in) + forward(moe.shared_out);
  }
  return flops;
}

}  // namespace

double flops_of(const Operator& op) {
  return is_product(op) ? 2.0 * static_cast<double>(op.groups) * static_cast<double>(op.m) *
                              static_cast<double>(op.n) * static_cast<double>(op.k)
                        : op.flops;
}

double bytes_of(const Operator& op) {
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n),
               k = static_cast<double>(op.k);
  return is_product(op)
             ? static_cast<double>(op.groups) * (m * k + k * n + m * n) * op.element_bytes
             : op.bytes;
}

double model_flops(const Job& job) {
  Job whole = job;
  whole.gpus = whole.tp = whole.cp = whole.ep = whole.pp = whole.vpp = whole.expert_tp = 1;
  whole.sequence_parallel = false;
  whole.moe_capacity = 0;
  whole.moe_imbalance = 1;
  const RankSizes sizes = rank_sizes(whole);
  double flops = forward(job.model.before, sizes) + forward(job.model.after, sizes);
  for (const LayerBlock& block : job.model.blocks) {
    flops += static_cast<double>(block.layers) * forward(block.modules, sizes);
  }
  constexpr double kForwardAndBackward = 3;
  return kForwardAndBackward * flops * static_cast<double>(job.global_batch) /
         static_cast<double>(job.micro_batch);
}

}  // namespace lockstep
