#pragma once

#include <string>

#include "generator/compute_profile.h"
#include "generator/megatron_model.h"
#include "generator/training_flags.h"

namespace lockstep {

/// The CSV rows of the layers of a Megatron or DeepSeek model, forward and backward, as AICB writes
/// them (specification section 4.1). Its backward pass is not the mirror of its forward pass, and
/// MoE layers have none.
class MegatronRows {
 public:
  /// `times` fills the elapsed time of computation rows; may be null. The arguments must outlive
  /// the object.
  MegatronRows(const TrainingArgs& args, const ComputeProfile* times)
      : args_(args), times_(times) {}

  std::string embedding(bool forward) const;
  std::string layer_forward(const LayerShape& shape) const;
  std::string layer_backward(const LayerShape& shape) const;

 private:
  void column_forward(std::string& text, const Linear& linear) const;
  void column_backward(std::string& text, const Linear& linear) const;
  void row_forward(std::string& text, const Linear& linear) const;
  void row_backward(std::string& text, const Linear& linear) const;
  void plain(std::string& text, const Linear& linear, bool forward) const;
  void linear(std::string& text, const Linear& linear, bool forward) const;
  void experts(std::string& text) const;
  void computation(std::string& text, const std::string& shapes, const std::string& stage) const;
  void tp_comm(std::string& text, std::string_view type, Count bytes, std::string_view stage) const;

  const TrainingArgs& args_;
  const ComputeProfile* times_;
};

}  // namespace lockstep
