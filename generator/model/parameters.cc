#include "generator/model/parameters.h"

namespace lockstep {

ParameterTotals module_parameters(const Module& module) {
  const auto in = static_cast<double>(module.in), out = static_cast<double>(module.out);
  const double bias = module.bias ? out : 0;
  double total = 0;
  switch (module.kind) {
    case ModuleKind::kEmbedding:
    case ModuleKind::kColumnLinear:
    case ModuleKind::kRowLinear:
    case ModuleKind::kPlainLinear:
    case ModuleKind::kHead:
      total = in * out;
      break;
    case ModuleKind::kNorm:
      total = in * (module.rms ? 1 : 2);
      break;
    case ModuleKind::kAttention:
    case ModuleKind::kActivation:
      break;
    case ModuleKind::kMoe: {
      const double matrices = module.gated ? 3 : 2;
      const auto mlp = [&](std::int64_t width) {
        const double biases = (matrices - 1) * static_cast<double>(width) + in;
        return matrices * in * static_cast<double>(width) + (module.bias ? biases : 0);
      };
      const double expert = mlp(module.expert_ffn);
      const double always =
          (in + (module.router_bias ? 1 : 0)) * static_cast<double>(module.experts) +
          (module.shared_ffn > 0 ? mlp(module.shared_ffn) : 0);
      if (module.shared) {
        return {};
      }
      return {always + expert * static_cast<double>(module.experts),
              always + expert * static_cast<double>(module.topk)};
    }
    case ModuleKind::kCustom:
      total = static_cast<double>(module.custom_parameters);
      break;
  }
  total = (module.shared ? 0 : total) + bias;
  return {total, total};
}

ParameterTotals model_parameters(const Model& model) {
  ParameterTotals sum;
  const auto add = [&sum](const std::vector<Module>& modules, std::int64_t times) {
    for (const Module& module : modules) {
      const ParameterTotals each = module_parameters(module);
      sum.total += each.total * static_cast<double>(times);
      sum.active += each.active * static_cast<double>(times);
    }
  };
  add(model.before, 1);
  for (const LayerBlock& block : model.blocks) {
    add(block.modules, block.layers);
  }
  add(model.after, 1);
  return sum;
}

}  // namespace lockstep
