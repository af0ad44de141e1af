#pragma once

#include <string_view>

namespace lockstep::aceso {

/// How an op's data lies over the GPUs of its stage.
enum class Layout {
  kAny,         ///< fits whatever comes
  kReplicated,  ///< R = tp, [1, dp, 1]
  kColumn,      ///< R = 1, [1, dp, tp]
  kHeads,       ///< R = 1, [dp, tp, 1]
  kBatchFirst,  ///< R = tp, [dp, 1, 1]
};

/// What the cost model knows of an op by its name alone.
struct OpTraits {
  bool tunable = false;          ///< tp, dp and the algorithm may change here
  bool recomputable = true;      ///< may carry a recompute flag
  bool greedy_skips = false;     ///< the greedy rule never picks it as the op to recompute
  bool boundary = false;         ///< a recomputed run ends before it
  bool ordinary = true;          ///< its activations count once; only such an op closes a run
  double activation_factor = 1;  ///< 0, 1 or 1.5
  Layout input[2] = {Layout::kReplicated, Layout::kReplicated};  ///< by algorithm
  Layout output[2] = {Layout::kReplicated, Layout::kReplicated};
};

OpTraits traits_of(std::string_view op_name, bool resnet);

}  // namespace lockstep::aceso
