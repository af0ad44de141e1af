#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "generator/model/model.h"

namespace lockstep {

enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
enum class Precision : std::uint8_t { kBf16, kFp16, kFp32, kFp8 };
/// Which of parameters, gradients and optimizer state are cut over the data-parallel ranks.
enum class Sharding : std::uint8_t { kNone, kZero1, kZero2, kZero3 };
/// How context-parallel ranks get each other's keys and values.
enum class ContextComm : std::uint8_t { kRing, kAllGather, kAllToAll };
/// Which transfers of tensor parallelism run beside pieces of their product (Megatron-LM,
/// --tp-comm-overlap; exact/product_pieces.h); with sequence parallelism alone.
struct ProductOverlap {
  bool gather = false;           ///< all-gathers of a product's rows
  bool reduce = false;           ///< reduce-scatters of its output, forward
  bool gradient_reduce = false;  ///< and of its input's gradient
  friend bool operator==(const ProductOverlap&, const ProductOverlap&) = default;
};
/// Who scales fp8's operands (Megatron-LM, --fp8-recipe; NVIDIA Transformer Engine, common/recipe).
enum class Fp8Recipe : std::uint8_t {
  kDelayed,     ///< one scale a tensor, from the largest values of steps before
  kTensorwise,  ///< one scale a tensor, from its own values
  kBlockwise,   ///< an fp32 scale for each 128 elements of a row, as in DeepSeek-V3
  kMxfp8,       ///< a scale of one byte for each 32 elements (OCP microscaling)
};

/// What is trained and how it is cut: everything a workload follows from.
struct Job {
  Model model;
  std::int64_t gpus = 1;
  std::int64_t tp = 1, cp = 1, ep = 1, pp = 1;
  std::int64_t expert_tp = 0;  ///< tensor parallelism inside experts; 0: tp
  std::int64_t vpp = 1;        ///< model chunks a stage
  /// Layers of the first and of the last stage; 0: as many as the others (exact/stages.h).
  std::int64_t first_stage_layers = 0, last_stage_layers = 0;
  /// Layers of each virtual stage in the model's order, in place of these; empty: not given.
  std::vector<std::int64_t> stage_layers;
  std::string rank_order = "tp-cp-ep-dp-pp";  ///< dimensions from the fastest (exact/groups.h)
  std::int64_t hsdp_replicas = 1;  ///< kZero3: copies of the sharded model (hybrid sharding)
  std::int64_t seq = 4096, micro_batch = 1, global_batch = 1;
  /// The vocabulary is padded to a multiple of this x tp (Megatron-LM,
  /// --make-vocab-size-divisible-by).
  std::int64_t vocab_multiple = 128;
  bool sequence_parallel = false;
  ProductOverlap product_overlap;
  Recompute recompute = Recompute::kNone;
  Precision precision = Precision::kBf16;
  Fp8Recipe fp8_recipe = Fp8Recipe::kDelayed;
  /// Of a gradient as it is added up and reduced, 2 or 4; 0: 4, in fp16 2. In fp32 always 4.
  std::int64_t gradient_bytes = 0;
  bool flash_attention = true;  ///< scores are never kept in memory
  bool dropout = false;         ///< on attention's scores and on what joins the residual
  Sharding sharding = Sharding::kNone;
  ContextComm context_comm = ContextComm::kRing;
  std::int64_t gradient_bucket = 0;  ///< parameters a bucket (buckets.h); 0: Megatron's default
  bool overlap_gradients = true, overlap_parameters = true;
  double moe_capacity = 0;   ///< factor that experts' inputs are cut and padded to; 0: dropless
  double moe_imbalance = 1;  ///< tokens of the fullest expert rank over the mean
  std::string schedule = "1f1b";
  std::string gpu_type = "H100";
  /// What the host needs to launch one operator; it runs ahead of the GPU as far as it can.
  Time host_launch;

  std::int64_t dp() const { return gpus / (tp * cp * pp); }
  std::int64_t microbatches() const { return global_batch / (micro_batch * dp()); }
};

}  // namespace lockstep
