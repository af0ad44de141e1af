#pragma once

#include <string>

#include "generator/training_flags.h"

namespace lockstep {

/// One parameter tensor, rows x columns.
struct DeepSpeedParameter {
  Count rows, columns;
  bool norm = false;  ///< a vector that takes part in no matrix product
  Count elements() const { return rows * columns; }
};

/// The parameters of the llama model of AICB's DeepSpeed frame in the order of a forward pass:
/// embedding; each layer's norm, q, k, v, o, norm, gate, down, up; norm; head. Nothing is stored:
/// element i is computed, and a parameter's first element in the flattened model too.
class DeepSpeedParameters {
 public:
  /// ERRORS: no attention head; the model overflows 64 bits.
  explicit DeepSpeedParameters(const TrainingArgs& args);

  std::int64_t size() const { return 3 + kPerLayer * layers_.value; }
  DeepSpeedParameter operator[](std::int64_t i) const;
  Count offset(std::int64_t i) const;  ///< of the first element; offset(size()) is the total
  Count total() const { return offset(size()); }

 private:
  static constexpr std::int64_t kPerLayer = 9;
  DeepSpeedParameter in_layer(std::int64_t i) const;

  Count hidden_, width_, ffn_, vocab_, layers_, per_layer_;
};

/// The computation rows of a parameter: the forward product, and for the backward pass the product
/// of the weight's gradient, whose stage is given. A norm has none.
void append_forward_product(std::string& text, const TrainingArgs& args,
                            const DeepSpeedParameter& parameter, std::string_view stage);
void append_gradient_product(std::string& text, const TrainingArgs& args,
                             const DeepSpeedParameter& parameter, std::string_view stage);

}  // namespace lockstep
