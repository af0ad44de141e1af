#include "generator/exact/shared_input.h"

#include <algorithm>

namespace lockstep {

bool reads_columns(const Module& module) {
  return module.kind == ModuleKind::kColumnLinear || module.kind == ModuleKind::kHead;
}

std::vector<SharedInput> shared_inputs(std::span<const Module> modules) {
  std::vector<SharedInput> inputs(modules.size());
  std::int64_t plain_output = 0;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const Module& module = modules[i];
    if (module.kind == ModuleKind::kPlainLinear) {
      plain_output = module.out;
    } else if (!reads_columns(module)) {
      plain_output = module.kind == ModuleKind::kNorm ? plain_output : 0;
    } else {
      const bool shares = i > 0 && reads_columns(modules[i - 1]) &&
                          modules[i - 1].in == module.in && modules[i - 1].cross == module.cross;
      inputs[i].width = std::max(plain_output, module.in);
      inputs[i].operand_width = module.in;
      inputs[i].first = !shares;
      if (shares) {
        inputs[i - 1].last = false;
        inputs[i].width = inputs[i - 1].width;
      }
      plain_output = 0;
    }
  }
  return inputs;
}

}  // namespace lockstep
