#include "app/simulate/interference_flag.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "generator/compute/gpu_spec.h"
#include "profiler/sweep/interference.h"

namespace lockstep {
namespace {

bool is_of(std::string_view type, const std::string& measured) {
  const GpuSpec *here = find_gpu_spec(type), *there = find_gpu_spec(measured);
  return here == nullptr || there == nullptr ? type == measured : here == there;
}

}  // namespace

Interference interference_of_flag(const std::string& value, const std::string& gpu_type,
                                  const Topology* topology, std::vector<std::string>& warnings) {
  Interference result;
  if (value.empty()) {
    return result;
  }
  if (const std::optional<double> share = to_double(value)) {
    if (!(*share >= 0 && *share <= 1)) {
      throw Error("'" + printable(value) + "' is no share")
          .field("--interference")
          .expected("a number from 0 to 1, or a file of lockstep profile --interference");
    }
    result.share = *share;
    return result;
  }
  const FileText text(value);
  const InterferenceTable table = read_interference_json(text.view(), value);
  for (const InterferenceRow& row : table.rows) {
    const double speed = std::min(1.0, row.compute_s / row.both_compute_s);
    result.measured.push_back({row.copy_blocks, std::max(Interference::kLeastSpeed, speed)});
  }
  std::vector<std::string_view> types;
  if (!gpu_type.empty()) {
    types.push_back(gpu_type);
  } else if (topology != nullptr) {
    types.assign(topology->gpu_types.begin(), topology->gpu_types.end());
  }
  if (!types.empty() && std::ranges::none_of(types, [&](std::string_view type) {
        return is_of(type, table.device.gpu);
      })) {
    warnings.push_back(printable(value) + ": measured on '" + printable(table.device.gpu) +
                       "', the cluster has " + join(types, ", "));
  }
  return result;
}

}  // namespace lockstep
