#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "generator/exact/operator.h"
#include "generator/job.h"

namespace lockstep {

/// A training step somebody has measured and published, as a job of ours.
struct PublishedStep {
  std::string source;    ///< where it stands: "vTrain, one node", …
  std::string file;      ///< and in which file
  std::int64_t row = 0;  ///< of the file's data, from 1
  Job job;
  std::string topology;  ///< of its cluster, as --topology takes it
  double measured_s = 0;
  FlashKernels flash_kernels = FlashKernels::kNewest;  ///< where attention is fused
  /// What its recipe turns on where tp > 1, which `job` has not: NVIDIA's recipes say
  /// tp_comm_overlap (Megatron-Bridge, scripts/performance: tensor_model_parallel_size > 1; NeMo's
  /// of dgxc; MLPerf's config files: TP_COMM_OVERLAP=True). The rates of sustained.h were fitted
  /// without it.
  ProductOverlap recipe_overlap;
};

struct PublishedSteps {
  std::vector<PublishedStep> steps;
  std::map<std::string, std::int64_t> skipped;  ///< "source: why", and how many rows
};

/// The tables of a folder, by their names; those that are absent are passed over:
///
///     vtrain_a100_single_node_steps.csv, vtrain_a100_multi_node_steps.csv   (Bang et al. 2024)
///     megatron_seqsel_table5.csv     Korthikanti et al. 2022, table 5
///     training-steps.csv             whatever has a model, a cut and a time: SC'21, MLPerf,
///                                    Megatron-Bridge, dgxc, llm-foundry, BLOOM, …
///
/// What a table does not say follows from its software and time, never from a single row:
///
///     Megatron-LM until 2022     fp16, dropout, no fused attention, eager launches of 125 us each
///     everything since           fused attention, no dropout, ZeRO-1 where dp > 1, sequence
///                                parallelism where tp > 1, launches hidden (CUDA graphs)
///     FSDP                       ZeRO-3; also where Megatron-Bridge's FSDP column says so
///     llm-foundry                FlashAttention of before version 2 (attn_impl: triton)
///     Megatron-Bridge's "FP8"    one scale a tensor, from its own values (its recipes' FP8-CS)
///     MLPerf 5.0's 405B          8 model chunks a stage (its submissions' config files)
///
/// Passed over, beside what lacks a field or a model: low-rank adapters, NVFP4, and rows of BLOOM's
/// chronicles whose layers and width are not of the size in their name (by more than 3 %).
///
/// ERRORS: Error if the folder has none of them, or with file, line and column where a cell is no
/// number.
PublishedSteps read_published_steps(const std::string& folder);

}  // namespace lockstep
