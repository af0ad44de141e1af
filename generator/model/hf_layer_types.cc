#include "generator/model/hf_layer_types.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/model/hf_types.h"

namespace lockstep {
namespace {

constexpr std::string_view kHint = "a model file can say so: docs/formats/model.md";
constexpr auto kLimited =
    std::to_array<std::string_view>({"sliding_attention", "chunked_attention"});
constexpr std::string_view kFull = "full_attention";

/// Whether a window cuts nothing off, since no sequence is longer.
bool spans_all(const JsonView& config, std::int64_t window) {
  return has_hf_field(config, "max_position_embeddings") &&
         window >= hf_field(config, "max_position_embeddings");
}

/// Whether each layer's attention has a window.
std::vector<bool> windows_of(const Model& model) {
  std::vector<bool> windows;
  for (const LayerBlock& block : model.blocks) {
    const bool windowed = std::ranges::any_of(block.modules, [](const Module& module) {
      return module.kind == ModuleKind::kAttention && module.window > 0;
    });
    windows.insert(windows.end(), static_cast<std::size_t>(block.layers), windowed);
  }
  return windows;
}

}  // namespace

void check_hf_layer_types(const JsonView& config, std::int64_t layers, const Model& model) {
  if (!has_hf_field(config, "layer_types")) {
    return;
  }
  const JsonView listed = config["layer_types"];
  std::vector<JsonView> types;
  listed.each([&](const JsonView& type) { types.push_back(type); });
  if (static_cast<std::int64_t>(types.size()) != layers) {
    throw listed.error(fmt::format("{} types of {} layers", types.size(), layers))
        .expected("one type for each layer");
  }
  constexpr std::string_view kWindow = "sliding_window|attention_chunk_size";
  const bool all_the_same =
      has_hf_field(config, kWindow) && spans_all(config, hf_field(config, kWindow));
  const std::vector<bool> windows = windows_of(model);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string& type = types[i].string();
    const bool limited = std::ranges::find(kLimited, type) != kLimited.end();
    const bool known = limited || type == kFull;
    const bool built = i < windows.size() ? windows[i] : limited;
    if (!known || (limited != built && !all_the_same)) {
      throw types[i]
          .error(fmt::format("'{}' is not what the built-in layer {} has", printable(type), i))
          .expected(i >= windows.size() ? fmt::format("{}, {}", join(kLimited, ", "), kFull)
                    : built             ? join(kLimited, " or ")
                                        : std::string(kFull))
          .hint(kHint);
    }
  }
}

}  // namespace lockstep
