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
  const bool interleaved = name.find("interleav") != std::string_view::npos;
  const std::string_view near = interleaved ? "1f1b with --vpp above 1" : closest(name, names);
  throw Error(fmt::format("there is no pipeline schedule '{}'", printable(name)))
      .field("--schedule")
      .expected(join(names, ", "))
      .hint(near.empty() ? std::string() : fmt::format("did you mean {}?", near));
}

void check_shape(const PipelineSchedule& schedule, const PipelineShape& shape) {
  if (shape.vpp > 1 && schedule.one_chunk) {
    throw Error(fmt::format("schedule {} knows no interleaving", schedule.name))
        .field("--vpp")
        .expected("1");
  }
  if (!schedule.bidirectional) {
    return;
  }
  if (shape.pp % 2 != 0) {
    throw Error(fmt::format("schedule {} folds the pipeline in two, but it has {} stages",
                            schedule.name, shape.pp))
        .field("--pp")
        .expected("an even number");
  }
  if (shape.microbatches % 2 != 0 || shape.microbatches < 2 * shape.pp) {
    throw Error(fmt::format("{} microbatches; schedule {} sends half of them each way",
                            shape.microbatches, schedule.name))
        .field("--global_batch")
        .expected(fmt::format("an even number of at least 2 pp = {} microbatches", 2 * shape.pp));
  }
}

Bytes peak_kept(std::span<const PipelineSlot> slots, std::span<const KeptByChunk> by_chunk) {
  Bytes now, peak;
  for (const PipelineSlot& slot : slots) {
    const KeptByChunk& of = by_chunk[static_cast<std::size_t>(slot.chunk)];
    if (!slot.backward) {
      now = now + of.kept;
    } else if (slot.part == BackwardPart::kInput) {
      now = now + of.again;
    } else {
      now = now - of.kept - (slot.part == BackwardPart::kWeights ? of.again : Bytes());
    }
    peak = std::max(peak, now);
  }
  return peak;
}

Bytes peak_kept(const PipelineSchedule& schedule, const PipelineShape& shape, std::int64_t stage,
                std::span<const KeptByChunk> by_chunk) {
  const auto peak = [&](std::int64_t microbatches) {
    return peak_kept(schedule.order({shape.pp, shape.vpp, microbatches}, stage), by_chunk);
  };
  const std::int64_t few = 4 * shape.pp;
  if (shape.microbatches <= 2 * few) {
    return peak(shape.microbatches);
  }
  const Bytes before = peak(few), now = peak(2 * few);
  return now + Bytes((now - before).count() / few * (shape.microbatches - 2 * few));
}

}  // namespace lockstep
