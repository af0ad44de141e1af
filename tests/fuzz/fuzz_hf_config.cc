// Hugging Face configs: whatever the bytes, a model whose parameters can be counted, or an Error.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "generator/model/hf_config.h"
#include "generator/model/parameters.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const lockstep::Model model = lockstep::parse_hf_config(
        std::string_view(reinterpret_cast<const char*>(data), size), "config.json");
    const lockstep::ParameterTotals counted = lockstep::model_parameters(model);
    LOCKSTEP_CHECK(counted.total >= counted.active && counted.active >= 0, "parameters");
  } catch (const lockstep::Error&) {
  }
  return 0;
}
