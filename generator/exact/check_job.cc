#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/compute/gpu_spec.h"
#include "generator/exact/nearest.h"
#include "generator/exact/product_pieces.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/schedule.h"
#include "generator/exact/stages.h"
#include "workloads/workload.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxSeq = std::int64_t{1} << 30;
constexpr std::int64_t kMaxMicroBatch = std::int64_t{1} << 20;
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 40;
constexpr std::int64_t kMaxPasses = std::int64_t{1} << 22;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 31;

void check_range(std::int64_t value, std::int64_t low, std::int64_t high, std::string_view field) {
  if (value < low || value > high) {
    throw Error(fmt::format("{} is out of range", value))
        .field(field)
        .expected(fmt::format("a whole number from {} to {}", low, high));
  }
}

/// `degree` cuts `what`: it must divide `size`. The nearest that do divide `ranks` too, so that
/// they leave the job a cut of its GPUs.
void check_divides(std::int64_t degree, std::string_view flag, std::int64_t size,
                   std::string_view what, std::int64_t ranks = 0) {
  if (size % degree != 0) {
    const std::int64_t both = std::gcd(size, ranks);
    throw Error(fmt::format("{} does not divide {} ({})", degree, what, size))
        .field(flag)
        .expected(fmt::format("a divisor of {}", size))
        .hint(fmt::format("nearest: {}", nearest_text(nearest_divisors(both, degree))));
  }
}

/// What tp, cp, ep and the experts' tp must divide, the other degrees given.
std::int64_t ranks_for_tp(const Job& job) { return job.gpus / (job.cp * job.pp); }
std::int64_t ranks_for_cp(const Job& job) { return job.gpus / (job.tp * job.pp); }
std::int64_t ranks_for_ep(const Job& job) { return job.gpus / (expert_tp(job) * job.pp); }
std::int64_t ranks_for_expert_tp(const Job& job) { return job.gpus / (job.ep * job.pp); }

void check_attention(const Module& module, const Job& job) {
  check_range(module.heads, 1, kMaxWidth, module.name + ".heads");
  check_range(module.kv_heads, 1, module.heads, module.name + ".kv_heads");
  check_range(module.head_dim, 1, kMaxWidth, module.name + ".head_dim");
  check_range(module.value_dim, 1, kMaxWidth, module.name + ".value_dim");
  check_divides(job.tp, "--tp", module.heads, fmt::format("the heads of {}", module.name),
                ranks_for_tp(job));
  if (module.kv_heads % job.tp != 0 && job.tp % module.kv_heads != 0) {
    throw Error(fmt::format("{} and the {} key-value heads of {} do not divide one another", job.tp,
                            module.kv_heads, module.name))
        .field("--tp")
        .expected(fmt::format("a divisor or a multiple of {}", module.kv_heads))
        .hint(fmt::format("nearest: {}",
                          nearest_text(nearest_related(module.kv_heads, job.tp, module.heads,
                                                       ranks_for_tp(job)))));
  }
  if (job.cp > 1 && job.context_comm == ContextComm::kAllToAll) {
    if (module.kv_heads < module.heads) {
      check_divides(
          job.cp, "--cp", std::max<std::int64_t>(1, module.kv_heads / job.tp),
          fmt::format("the key-value heads of {} on a rank, as all-to-all needs", module.name),
          ranks_for_cp(job));
    }
    check_divides(job.cp, "--cp", module.heads / job.tp,
                  fmt::format("the heads of {} on a rank, as all-to-all needs", module.name),
                  ranks_for_cp(job));
  }
}

/// A product whose output is reduce-scattered piece by piece.
void check_pieces(std::int64_t width, const std::string& name, const Job& job) {
  if (job.tp > 1 && width % kReducePieces != 0) {
    throw Error(fmt::format("the width of {} ({}) does not divide into {} pieces", name, width,
                            kReducePieces))
        .field("--tp_comm_overlap")
        .expected(fmt::format("a multiple of {}", kReducePieces))
        .hint("--disable_tp_comm_overlap_rs reduces it whole");
  }
}

void check_moe(const Module& module, const Job& job) {
  check_range(module.experts, 1, kMaxWidth, module.name + ".experts");
  check_range(module.topk, 1, module.experts, module.name + ".topk");
  check_range(module.expert_ffn, 1, kMaxWidth, module.name + ".expert_ffn");
  check_range(module.shared_ffn, 0, kMaxWidth, module.name + ".shared_ffn");
  check_divides(job.ep, "--ep", module.experts, fmt::format("the experts of {}", module.name),
                ranks_for_ep(job));
  check_divides(expert_tp(job), "--expert_tp", module.expert_ffn,
                fmt::format("the width of the experts of {}", module.name),
                ranks_for_expert_tp(job));
  check_divides(job.tp, "--tp", module.shared_ffn,
                fmt::format("the width of the shared experts of {}", module.name),
                ranks_for_tp(job));
  if (module.shared_ffn > 0 &&
      (job.product_overlap.reduce || job.product_overlap.gradient_reduce)) {
    check_pieces(module.in, module.name, job);
  }
  if (job.tp > 1 && !job.sequence_parallel) {
    throw Error("experts with tensor parallelism need sequence parallelism")
        .field("--sequence_parallel")
        .expected("sequence parallelism, or tp 1");
  }
}

void check_module(const Module& module, const Job& job) {
  check_range(module.in, 0, kMaxWidth, module.name + ".in");
  check_range(module.out, 0, kMaxWidth, module.name + ".out");
  check_range(module.custom_parameters, 0, kMaxWidth * kMaxWidth, module.name + ".parameters");
  switch (module.kind) {
    case ModuleKind::kColumnLinear:
      check_divides(job.tp, "--tp", module.out, fmt::format("the output of {}", module.name),
                    ranks_for_tp(job));
      if (job.product_overlap.gradient_reduce) {
        check_pieces(module.in, module.name, job);
      }
      break;
    case ModuleKind::kRowLinear:
      check_divides(job.tp, "--tp", module.in, fmt::format("the input of {}", module.name),
                    ranks_for_tp(job));
      if (job.product_overlap.reduce) {
        check_pieces(module.out, module.name, job);
      }
      break;
    case ModuleKind::kAttention:
      check_attention(module, job);
      break;
    case ModuleKind::kMoe:
      check_moe(module, job);
      break;
    default:
      break;
  }
}

void check_model(const Job& job) {
  StageCut cut{.layers = 0, .pp = job.pp, .vpp = job.vpp};
  cut.first_layers = job.first_stage_layers;
  cut.last_layers = job.last_stage_layers;
  cut.counts = job.stage_layers;
  for (const LayerBlock& block : job.model.blocks) {
    check_range(block.layers, 1, 1'000'000, block.name + ".layers");
    cut.layers += block.layers;
    // Heads first: what they say is plainer than the width of their projections.
    for (const bool heads : {true, false}) {
      for (const Module& module : block.modules) {
        if ((module.kind == ModuleKind::kAttention) == heads) {
          check_module(module, job);
        }
      }
    }
  }
  for (const auto* modules : {&job.model.before, &job.model.after}) {
    for (const Module& module : *modules) {
      check_module(module, job);
    }
  }
  if (job.ep > 1 && !has_experts(job.model)) {
    throw Error(fmt::format("{} has no experts to spread", printable(job.model.name)))
        .field("--ep")
        .expected("1");
  }
  cut_into_stages(cut);
}

void check_batch(const Job& job) {
  check_range(job.vpp, 1, kMaxPasses, "--vpp");
  check_range(job.seq, 1, kMaxSeq, "--seq");
  check_range(job.micro_batch, 1, kMaxMicroBatch, "--micro_batch");
  check_range(job.global_batch, 1, kMaxBatch, "--global_batch");
  const std::int64_t unit = job.micro_batch * job.dp();
  if (job.global_batch % unit != 0) {
    throw Error(fmt::format("{} is no multiple of micro_batch x dp = {} x {}", job.global_batch,
                            job.micro_batch, job.dp()))
        .field("--global_batch")
        .expected(fmt::format("{}, or a multiple of {} sequences",
                              nearest_text(nearest_multiples(job.global_batch, unit)), unit));
  }
  if (job.microbatches() > kMaxPasses / job.vpp) {
    throw Error(fmt::format("{} microbatches of {} chunks a stage", job.microbatches(), job.vpp))
        .field("--global_batch")
        .expected(fmt::format("at most {} passes", kMaxPasses))
        .hint("fewer microbatches: a smaller global_batch or a larger micro_batch");
  }
  if (job.cp > 1 && job.seq % (2 * job.cp) != 0) {
    throw Error(fmt::format("{} tokens do not divide into 2 x cp = {} chunks", job.seq, 2 * job.cp))
        .field("--seq")
        .expected(nearest_text(nearest_multiples(job.seq, 2 * job.cp)));
  }
  if (job.sequence_parallel) {
    const std::int64_t ranks = job.tp * job.cp;
    if (job.seq / job.cp % job.tp != 0) {
      const std::int64_t chunks = job.cp > 1 ? 2 * job.cp : 1;
      throw Error(fmt::format("{} tokens do not divide by tp x cp = {} x {}, as sequence "
                              "parallelism needs",
                              job.seq, job.tp, job.cp))
          .field("--seq")
          .expected(nearest_text(nearest_multiples(job.seq, std::lcm(ranks, chunks))))
          .hint(fmt::format("or --tp {}",
                            nearest_text(nearest_divisors(
                                std::gcd(job.seq / job.cp, ranks_for_tp(job)), job.tp))));
    }
  }
  if (job.vpp > 1) {
    if (job.pp < 2) {
      throw Error("one stage has nothing to interleave")
          .field("--vpp")
          .expected("1, or pp of 2 or more");
    }
    if (job.microbatches() % job.pp != 0) {
      throw Error(fmt::format("{} microbatches do not divide by pp = {}, as interleaving needs",
                              job.microbatches(), job.pp))
          .field("--global_batch")
          .expected(nearest_text(nearest_multiples(job.global_batch, unit * job.pp)));
    }
  }
  check_shape(pipeline_schedule_named(job.schedule), {job.pp, job.vpp, job.microbatches()});
}

void check_sharding(const Job& job) {
  check_range(job.hsdp_replicas, 1, kMaxGpus, "--hsdp_replicas");
  if (job.hsdp_replicas > 1) {
    if (job.sharding != Sharding::kZero3) {
      throw Error("only a fully sharded model is replicated")
          .field("--hsdp_replicas")
          .expected("1");
    }
    check_divides(job.hsdp_replicas, "--hsdp_replicas", job.dp() * job.cp, "dp x cp");
    check_divides(job.hsdp_replicas, "--hsdp_replicas", layout_of(job).expert_dp(),
                  "the ranks that hold the same experts");
  }
  check_range(job.gradient_bucket, 0, kMaxBatch, "--gradient_bucket");
  if (!(job.moe_capacity >= 0 && job.moe_capacity <= 1e6)) {
    throw Error("the capacity factor is out of range")
        .field("--moe_capacity")
        .expected("a number from 0 (dropless) to 1e6");
  }
  const auto fullest = static_cast<double>(job.ep);
  if (!(job.moe_imbalance >= 1 && job.moe_imbalance <= fullest)) {
    throw Error("the imbalance of experts is out of range")
        .field("--moe_imbalance")
        .expected(fmt::format("a number from 1 (even) to ep = {} (all on one rank)", job.ep));
  }
}

const GpuSpec& gpu_of(const Job& job) {
  try {
    return gpu_spec(job.gpu_type);
  } catch (Error& error) {
    throw Error(std::move(error).field("--gpu_type"));
  }
}

void check_precision(const Job& job) {
  const GpuSpec& gpu = gpu_of(job);
  if (supports(gpu, job.precision)) {
    return;
  }
  std::vector<std::string_view> here, able;
  for (const Precision each :
       {Precision::kBf16, Precision::kFp16, Precision::kFp32, Precision::kFp8}) {
    if (supports(gpu, each)) {
      here.push_back(to_text(each));
    }
  }
  for (const GpuSpec& other : gpu_specs()) {
    if (supports(other, job.precision)) {
      able.push_back(other.name);
    }
  }
  throw Error(fmt::format("{} has no {}", gpu.name, to_text(job.precision)))
      .field("--precision")
      .expected(join(here, ", "))
      .hint(fmt::format("{} have it", join(able, ", ")));
}

}  // namespace

void check_job(const Job& job) {
  check_range(job.expert_tp, 0, kMaxGpus, "--expert_tp");
  if (job.product_overlap != ProductOverlap() && job.tp > 1 && !job.sequence_parallel) {
    throw Error("only what is cut along the sequence overlaps with its product")
        .field("--tp_comm_overlap")
        .expected("--sequence_parallel beside it, or tp 1");
  }
  check_layout(layout_of(job));
  check_batch(job);
  check_model(job);
  check_sharding(job);
  check_precision(job);
}

}  // namespace lockstep
