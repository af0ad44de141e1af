#include "generator/exact/schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

const PipelineSchedule& pipeline_schedule_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PipelineSchedule* each : pipeline_schedules()) {
    if (each->name == name) {
      return *each;
    }
    names.push_back(each->name);
  }
  const std::string_view near = closest(name, names);
  throw Error(fmt::format("there is no pipeline schedule '{}'", printable(name)))
      .field("--schedule")
      .expected(join(names, ", "))
      .hint(near.empty() ? std::string() : fmt::format("did you mean {}?", near));
}

Bytes peak_kept(std::span<const PipelineSlot> slots, std::span<const Bytes> by_chunk) {
  Bytes now, peak;
  for (const PipelineSlot& slot : slots) {
    const Bytes kept = by_chunk[static_cast<std::size_t>(slot.chunk)];
    now = slot.backward ? now - kept : now + kept;
    peak = std::max(peak, now);
  }
  return peak;
}

}  // namespace lockstep
