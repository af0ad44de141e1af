#include "generator/exact/rank_sizes.h"

namespace lockstep {

std::int64_t expert_tp(const Job& job) { return job.expert_tp > 0 ? job.expert_tp : job.tp; }

Bytes operand_bytes(std::int64_t rows, std::int64_t width, const RankSizes& sizes) {
  const Bytes elements = Bytes(rows) * width;
  const std::int64_t scales =
      sizes.scale_sharers == 0 ? 0
                               : (elements.count() + sizes.scale_sharers - 1) / sizes.scale_sharers;
  return elements * sizes.operand + Bytes(scales);
}

RankLayout layout_of(const Job& job) {
  RankLayout layout;
  layout.gpus = job.gpus;
  layout.tp = job.tp;
  layout.cp = job.cp;
  layout.pp = job.pp;
  layout.ep = job.ep;
  layout.etp = expert_tp(job);
  layout.order = job.rank_order;
  return layout;
}

std::int64_t dense_shards(const Job& job) { return job.dp() * job.cp / job.hsdp_replicas; }
std::int64_t expert_shards(const Job& job) {
  return layout_of(job).expert_dp() / job.hsdp_replicas;
}

RankSizes rank_sizes(const Job& job) {
  RankSizes sizes;
  sizes.tp = job.tp;
  sizes.cp = job.cp;
  sizes.ep = job.ep;
  sizes.etp = expert_tp(job);
  sizes.sequence_parallel = job.sequence_parallel && job.tp > 1;
  sizes.micro_batch = job.micro_batch;
  sizes.seq = job.seq;
  sizes.tokens = job.micro_batch * (job.seq / job.cp);
  sizes.local_tokens = sizes.sequence_parallel ? sizes.tokens / job.tp : sizes.tokens;
  sizes.routed = job.moe_capacity > 0 ? job.moe_capacity : job.moe_imbalance;
  sizes.capacity = job.moe_capacity > 0;
  sizes.flash_attention = job.flash_attention;
  sizes.dropout = job.dropout;
  const bool fp32 = job.precision == Precision::kFp32;
  sizes.activation = fp32 ? 4 : 2;
  const bool fp8 = job.precision == Precision::kFp8;
  sizes.operand = fp8 ? 1 : sizes.activation;
  const bool blocks =
      job.fp8_recipe == Fp8Recipe::kBlockwise || job.fp8_recipe == Fp8Recipe::kMxfp8;
  sizes.scale_sharers = fp8 && blocks ? 32 : 0;
  sizes.shares_largest = fp8 && job.fp8_recipe == Fp8Recipe::kTensorwise;
  sizes.dispatches_operands = fp8 && job.fp8_recipe == Fp8Recipe::kBlockwise;
  sizes.parameter = fp32 ? 4 : 2;
  sizes.gradient = fp32                                ? 4
                   : job.gradient_bytes > 0            ? static_cast<int>(job.gradient_bytes)
                   : job.precision == Precision::kFp16 ? 2
                                                       : 4;
  return sizes;
}

}  // namespace lockstep
