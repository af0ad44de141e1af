#include "generator/layers/aicb_layers.h"

#include <string>

#include "base/error.h"
#include "generator/layers/aicb_layer_files.h"
#include "generator/model/model_file.h"

namespace lockstep {

Model aicb_layers(std::string_view name, const LayerValues& values) {
  Variables given;
  for (const auto& [variable, value] : values) {
    given[variable] = static_cast<double>(value.value);
  }
  const std::string file = std::string(name) + ".yaml";
  for (const BuiltInFile& each : aicb_layer_files()) {
    if (each.name == file) {
      return parse_model(each.text, file, given,
                         {.smallest = 0,
                          .largest = std::int64_t{1} << 53,
                          .layers = 1'000'000,
                          .modules = 1'000'000,
                          .no_layers = true});
    }
  }
  LOCKSTEP_CHECK(false, "the layer list is built in");
  return {};
}

}  // namespace lockstep
