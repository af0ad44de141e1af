#include "profiler/sweep/efficiency_json.h"

#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "generator/compute/gpu_spec.h"

namespace lockstep {
namespace {

Json to_json(const FitError& error) {
  return {{"shapes", error.shapes},
          {"median", error.median},
          {"p90", error.ninetieth},
          {"worst", error.worst},
          {"bias", error.bias}};
}

Json to_json(const AttentionPass& pass) {
  return {{"share", pass.share}, {"key_s", pass.key_s}, {"extra_keys", pass.extra_keys}};
}

std::string to_row(const char* side, const FitError& error) {
  return fmt::format(
      "  {:<9} {:>5} shapes  median {:5.1f} %  p90 {:5.1f} %  worst {:5.1f} %  "
      "bias {:+5.1f} %\n",
      side, error.shapes, 100 * error.median, 100 * error.ninetieth, 100 * error.worst,
      100 * error.bias);
}

}  // namespace

std::string to_efficiency_json(const FittedEfficiency& fitted, const Measurements& measurements) {
  Json json;
  json["schema"] = kEfficiencySchema;
  json["gpu"] = fitted.gpu;
  json["provenance"] = {{"device", measurements.device.gpu},
                        {"driver", measurements.device.driver},
                        {"libraries", measurements.device.libraries},
                        {"when", measurements.when},
                        {"command", measurements.command}};
  json["gemm"] = Json::array();
  for (const FittedGemm& one : fitted.gemm) {
    json["gemm"].push_back({{"precision", to_text(one.precision)},
                            {"launch_s", one.efficiency.launch.seconds()},
                            {"depth_s", one.efficiency.depth_ns * 1e-9},
                            {"compute", one.efficiency.compute},
                            {"input", one.efficiency.input},
                            {"output", one.efficiency.output},
                            {"fill", one.efficiency.fill},
                            {"fitted_error", to_json(one.fitted)},
                            {"held_out_error", to_json(one.held_out)}});
  }
  if (fitted.attention.forward.share > 0) {
    json["attention"] = {{"forward", to_json(fitted.attention.forward)},
                         {"backward", to_json(fitted.attention.backward)},
                         {"fitted_error", to_json(fitted.attention_fitted)},
                         {"held_out_error", to_json(fitted.attention_held_out)}};
  }
  if (fitted.memory > 0) {
    json["memory"] = {{"efficiency", fitted.memory},
                      {"held_out_error", to_json(fitted.memory_held_out)}};
  }
  return to_text(json);
}

std::string efficiency_table(const FittedEfficiency& fitted) {
  std::string text = fitted.gpu + "\n";
  for (const FittedGemm& one : fitted.gemm) {
    const GemmEfficiency& e = one.efficiency;
    text += fmt::format(
        "products in {}: launch {:.3f} us, depth {:.3f} ns, compute {:.3f}, input "
        "{:.3f}, output {:.3f}, fill {:.3f}\n",
        to_text(one.precision), e.launch.us(), e.depth_ns, e.compute, e.input, e.output, e.fill);
    text += to_row("fitted", one.fitted) + to_row("held out", one.held_out);
  }
  if (fitted.attention.forward.share > 0) {
    for (const auto& [name, pass] : {std::pair("forward", fitted.attention.forward),
                                     std::pair("backward", fitted.attention.backward)}) {
      text += fmt::format("attention {}: {:.3f} of peak, {:.2f} ns a key\n", name, pass.share,
                          pass.key_s * 1e9);
    }
    text +=
        to_row("fitted", fitted.attention_fitted) + to_row("held out", fitted.attention_held_out);
  }
  if (fitted.memory > 0) {
    text += fmt::format("memory: {:.3f} of the data sheet's bandwidth\n", fitted.memory) +
            to_row("held out", fitted.memory_held_out);
  }
  return text;
}

}  // namespace lockstep
