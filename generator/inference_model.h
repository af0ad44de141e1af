#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"
#include "generator/argparse.h"
#include "generator/count.h"
#include "generator/generator.h"

namespace lockstep {

/// The flags of AICB's inference generators.
const ArgTable& inference_flag_table();

/// What a layer's line does. Which lines a layer has: generator/layers/inference-*.yaml.
enum class InferenceOp : std::uint8_t {
  kAttentionNorm,
  kAttention,        ///< full attention
  kLinearAttention,  ///< gated delta net
  kDenseMlp,
  kSharedExperts,
  kMoeNorm,
  kMoeRoute,   ///< routing and dispatch
  kMoeExpert,  ///< experts and combine
};

/// A forward pass as AICB's inference generators see it: names, sizes in bytes, times in ns.
struct InferenceModel {
  struct Item {
    std::string name;
    InferenceOp op = InferenceOp::kAttention;
    std::int64_t ns = 1;  ///< 1 where no time is known
  };
  /// Equal layers in a row, and what one of them does.
  struct Block {
    std::int64_t layers = 1;
    std::vector<Item> items;
  };

  std::string name;  ///< AICB's name of the model, in file names
  std::string phase;
  Count world_size, tp, pp, ep, micro_batch, seq, hidden;
  Count tokens;      ///< of a forward pass: micro_batch (decode) or seq (prefill)
  Count activation;  ///< 2 tokens hidden
  Count dispatch, combine;
  bool route_is_timed = true;  ///< DeepSeek's routing has no time of its own
  std::vector<Block> blocks;
};

/// Reads the model from a request: name, configuration file, flags; and the compute times, from the
/// file AICB's AIOB would have left, if it is there (specification section 6), with
/// warn_of_aiob_times().
///
/// ERRORS: an unknown model, no or a wrong configuration, degrees that do not fit the world, a
/// linear layer of DeepSeek that tp does not divide, more rows than we write.
InferenceModel inference_model(const GenerateRequest& request, Warnings& warnings);

/// "DeepSeek-671B-world_size8-tp1-pp1-ep8-bs32-seq1024-decode".
std::string inference_base_name(const InferenceModel& model);

}  // namespace lockstep
