#include "generator/exact/schedule.h"

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
      .field("schedule")
      .expected(join(names, ", "))
      .hint(near.empty() ? std::string() : fmt::format("did you mean {}?", near));
}

std::vector<std::int64_t> peak_in_flight(std::span<const PipelineSlot> slots, std::int64_t vpp) {
  std::vector<std::int64_t> now(static_cast<std::size_t>(vpp), 0), peak = now;
  std::int64_t sum = 0, most = 0;
  for (const PipelineSlot& slot : slots) {
    const std::int64_t step = slot.backward ? -1 : 1;
    now[static_cast<std::size_t>(slot.chunk)] += step;
    sum += step;
    if (sum > most) {
      most = sum;
      peak = now;
    }
  }
  return peak;
}

}  // namespace lockstep
