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

struct Row {
  ZooEntry entry;
  ParameterTotals parameters;
  std::int64_t layers = 0;  ///< of all blocks
  std::int64_t each = 0;    ///< as --num-layers gives them: of encoder and decoder each
  std::int64_t hidden = 0;
};

/// "32", or the encoder's and the decoder's: "24+24".
std::string layers_text(const Row& row) {
  return row.layers == row.each ? fmt::format("{}", row.layers)
                                : fmt::format("{}+{}", row.each, row.layers - row.each);
}

std::vector<Row> rows_of_zoo() {
  std::vector<Row> rows;
  for (const ZooEntry& entry : list_models()) {
    const Model model = find_model(entry.name);
    Row& row = rows.emplace_back(Row{entry, model_parameters(model)});
    row.hidden = static_cast<std::int64_t>(model.variables.at("hidden"));
    row.each = static_cast<std::int64_t>(model.variables.at("layers"));
    for (const LayerBlock& block : model.blocks) {
      row.layers += block.layers;
    }
  }
  return rows;
}

}  // namespace

std::string model_table() {
  std::string text = fmt::format("{:<18} {:>11} {:>11} {:>7} {:>7}  {}\n", "model", "parameters",
                                 "active", "layers", "hidden", "architecture");
  for (const Row& row : rows_of_zoo()) {
    const ZooEntry& entry = row.entry;
    text += fmt::format("{:<18} {:>11} {:>11} {:>7} {:>7}  {}", entry.name,
                        count_text(row.parameters.total), count_text(row.parameters.active),
                        layers_text(row), row.hidden, entry.architecture);
    const std::vector<std::string_view> aliases(entry.aliases.begin(), entry.aliases.end());
    text += aliases.empty() ? "\n" : fmt::format(", also {}\n", join(aliases, ", "));
  }
  return text;
}

Json models_json() {
  Json models = Json::array();
  for (const Row& row : rows_of_zoo()) {
    models.push_back({{"name", row.entry.name},
                      {"aliases", row.entry.aliases},
                      {"architecture", row.entry.architecture},
                      {"parameters", row.parameters.total},
                      {"active_parameters", row.parameters.active},
                      {"layers", row.layers},
                      {"num_layers", row.each},
                      {"hidden", row.hidden}});
  }
  return {{"schema", "lockstep-models/1"}, {"models", std::move(models)}};
}

}  // namespace lockstep
