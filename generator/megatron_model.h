#pragma once

#include <string>
#include <vector>

#include "generator/training_flags.h"

namespace lockstep {

/// How a linear layer is cut over the tensor parallel group.
enum class LinearKind : std::uint8_t { kColumn, kRow, kPlain };

/// A linear layer in -> out. Cut, its output (kColumn) or input (kRow) is divided by tp.
struct Linear {
  std::string name;
  LinearKind kind = LinearKind::kColumn;
  Count in, out;     ///< whole, before the cut
  Count parameters;  ///< of one rank, bias included
};

/// One kind of transformer layer.
struct LayerShape {
  std::vector<Linear> attention;  ///< column and row, or the five of DeepSeek's MLA
  Count attention_norms;          ///< parameters of the norms inside MLA
  bool mla = false;
  bool moe = false;
  Count moe_parameters;     ///< of a MoE layer, DeepSeek's shared experts included
  std::vector<Linear> mlp;  ///< the dense MLP, or the shared experts of a DeepSeek MoE layer

  Count attention_parameters() const;  ///< with the norms inside
  Count mlp_parameters() const;        ///< of `mlp`
};

/// A run of equal layers.
struct LayerRun {
  std::size_t shape = 0;  ///< index into MegatronModel::shapes
  Count layers;
};

/// The layer lists are generator/layers/megatron.yaml and deepseek.yaml.
///
/// The model of one rank of one pipeline stage as AICB builds it for its frames Megatron and
/// DeepSeek (specification section 2.2). AICB gives every stage the embedding and the head.
struct MegatronModel {
  bool deepseek = false;
  Count embedding;  ///< parameters, in AICB's own count: 4 (V/tp) h + s h
  Count norm;       ///< parameters of the norm between attention and MLP: 2 h
  std::vector<LayerShape> shapes;
  std::vector<LayerRun> runs;  ///< from the first layer to the last
  Linear head;
};

/// ERRORS: Error naming the size that tp does not divide.
MegatronModel megatron_model(const TrainingArgs& args);

/// Parameter sums in AICB's counts; they differ, and are named after where they are used.
struct ParameterSums {
  Count simai_all;  ///< T: of SimAI's file; norms and head only with sequence parallelism,
                    ///< DeepSeek's shared experts twice
  Count simai_moe;  ///< M: the part of T in MoE layers
  Count csv_all;    ///< N: of the CSV, everything once
};
ParameterSums parameter_sums(const MegatronModel& model, const TrainingArgs& args);

}  // namespace lockstep
