#pragma once

#include <string>
#include <vector>

#include "generator/training_flags.h"

namespace lockstep {

/// One parameter tensor, rows x columns.
struct DeepSpeedParameter {
  Count rows, columns;
  Count elements() const { return rows * columns; }
};

/// The parameters of the llama model of AICB's DeepSpeed frame in the order of a forward pass
/// (generator/layers/deepspeed.yaml): what is before the layers, the layers, what is after. One
/// layer is stored: element i is computed, and a parameter's first element in the flattened model.
class DeepSpeedParameters {
 public:
  /// ERRORS: no attention head; the model overflows 64 bits.
  explicit DeepSpeedParameters(const TrainingArgs& args);

  std::int64_t size() const {
    return count(before_) + count(layer_) * layers_.value + count(after_);
  }
  DeepSpeedParameter operator[](std::int64_t i) const;
  Count offset(std::int64_t i) const;  ///< of the first element; offset(size()) is the total
  Count total() const { return offset(size()); }

 private:
  using List = std::vector<DeepSpeedParameter>;
  static std::int64_t count(const List& list) { return static_cast<std::int64_t>(list.size()); }
  /// Elements of the first `n`.
  static Count elements(const List& list, std::int64_t n);

  List before_, layer_, after_;
  Count layers_;
  Count before_elements_, layer_elements_;
};

/// The computation rows of a parameter: the forward product, and for the backward pass the product
/// of the weight's gradient, whose stage is given. AICB has none for one column, as a norm's.
void append_forward_product(std::string& text, const TrainingArgs& args,
                            const DeepSpeedParameter& parameter, std::string_view stage);
void append_gradient_product(std::string& text, const TrainingArgs& args,
                             const DeepSpeedParameter& parameter, std::string_view stage);

}  // namespace lockstep
