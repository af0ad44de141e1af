#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiler/device.h"

namespace lockstep {

inline constexpr std::string_view kInterferenceSchema = "lockstep-interference/1";

/// How much a product and a copy that share a GPU slow each other down, by the thread blocks that
/// the copy takes (NCCL takes one an SM for each channel).
struct InterferenceTable {
  MeasuredDevice device;
  Kernel product;
  std::int64_t copy_bytes = 0;
  std::vector<InterferenceRow> rows;
};

/// A bf16 product of 8192 x 8192 x 8192 beside a device copy of 1 GiB, for 1, 2, 4, 8, 16, 24, 32,
/// 48 and 64 blocks: NCCL has no more channels.
InterferenceTable measure_interference(Device& device, const TimingOptions& options);

/// docs/formats/interference.md; the slowdowns are ratios, both over alone.
std::string to_interference_json(const InterferenceTable& table);

/// ERRORS: Error with the file and the place in the document: not JSON, another schema, a field
/// that is missing, unknown or wrong, rows whose blocks do not ascend.
InterferenceTable read_interference_json(std::string_view text, const std::string& file);

std::string interference_text(const InterferenceTable& table);

}  // namespace lockstep
