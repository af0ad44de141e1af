#include "generator/model/model_table.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "generator/model/parameters.h"
#include "generator/model/zoo.h"

namespace lockstep {
namespace {

/// "8.03 B", "304.3 M": four figures.
std::string count_text(double count) {
  const bool billions = count >= 1e9;
  const double scaled = count / (billions ? 1e9 : 1e6);
  const int decimals = scaled < 10 ? 3 : scaled < 100 ? 2 : 1;
  return fmt::format("{:.{}f} {}", scaled, decimals, billions ? "B" : "M");
}

}  // namespace

std::string model_table() {
  std::string text = fmt::format("{:<18} {:>11} {:>11} {:>7} {:>7}  {}\n", "model", "parameters",
                                 "active", "layers", "hidden", "architecture");
  for (const ZooEntry& entry : list_models()) {
    const Model model = find_model(entry.name);
    const ParameterTotals counted = model_parameters(model);
    std::int64_t layers = 0;
    for (const LayerBlock& block : model.blocks) {
      layers += block.layers;
    }
    text += fmt::format("{:<18} {:>11} {:>11} {:>7} {:>7}  {}", entry.name,
                        count_text(counted.total), count_text(counted.active), layers,
                        model.variables.at("hidden"), entry.architecture);
    const std::vector<std::string_view> aliases(entry.aliases.begin(), entry.aliases.end());
    text += aliases.empty() ? "\n" : fmt::format(", also {}\n", join(aliases, ", "));
  }
  return text;
}

}  // namespace lockstep
