#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace lockstep::aceso {

/// The op lists Aceso plans for: how the rows of an op table repeat to make the model.
enum class Family { kGpt, kT5, kResnet, kScaleLayer };

/// Ops of one layer or block, and of what comes before resnet's first; two come after the last.
inline constexpr int kEncoderLayer = 13, kDecoderLayer = 21, kResnetBlock = 8, kResnetHead = 4;

/// One model of Aceso's fixed list (its model constants; SuperScaler fa80ad0, aceso_cost_model).
struct Model {
  Family family = Family::kGpt;
  std::string name;          ///< "gpt", "t5", "resnet", "scale-layer"
  std::string size;          ///< "1_3B", "16layers"
  std::string table_prefix;  ///< of its op tables: "gpt_1_3B"; 22B of t5 uses those of 11B
  std::int64_t layers = 0;   ///< encoder layers (and as many decoder layers of t5); blocks
  bool fp32 = false;         ///< resnet trains in fp32, the others in fp16
  int algorithms = 1;        ///< tensor-parallel variants that are profiled
  bool resharding = false;   ///< whether layout changes inside a stage are priced
  std::vector<std::pair<std::string, Json>> runtime;  ///< fields of a plan that the runtime reads

  /// Bytes kept per byte of weights for the main copy, and for the optimizer.
  double main_params() const { return fp32 ? 0 : 2; }
  double optimizer() const { return fp32 ? 2 : 4; }
};

/// The model of that name. `layers` is for scale-layer alone, where the size may be "16layers" too.
/// ERRORS: Error with the known names and sizes.
Model find_model(std::string_view name, std::string_view size, std::int64_t layers = 0);

/// Which row of the op table each op of the model is, in order; `rows` are the table's names.
/// ERRORS: Error if the table has not as many rows as the family needs.
std::vector<int> op_rows(const Model& model, const std::vector<std::string>& rows,
                         const std::string& table_file);

}  // namespace lockstep::aceso
