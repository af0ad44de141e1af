#include "app/simulate/byteps_trace.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/byteps_timeline.h"

namespace lockstep {
namespace {

std::int64_t step_of(const char* variable, std::int64_t otherwise, std::int64_t steps) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
    return otherwise;
  }
  const auto value = to_int(text);
  if (!value || *value < 1 || *value > steps) {
    throw Error(fmt::format("'{}' is no step of the run", printable(text)))
        .field(variable)
        .expected(fmt::format("1 to {} (--steps)", steps));
  }
  return *value;
}

}  // namespace

TracedSteps traced_steps(std::int64_t steps) {
  const TracedSteps traced{step_of("BYTEPS_TRACE_START_STEP", 1, steps),
                           step_of("BYTEPS_TRACE_END_STEP", steps, steps)};
  if (traced.first > traced.last) {
    throw Error(
        fmt::format("the first traced step is {}, the last one {}", traced.first, traced.last))
        .field("BYTEPS_TRACE_START_STEP")
        .expected("at most BYTEPS_TRACE_END_STEP");
  }
  return traced;
}

void write_byteps_trace(const std::string& folder, TracedSteps steps, const Topology& topology,
                        const std::function<std::pair<Time, Timeline>(std::int64_t)>& run) {
  std::vector<StepPicture> pictures;
  Time begin;
  for (std::int64_t step = 1; step <= steps.last; ++step) {
    auto [time, timeline] = run(step - 1);
    if (step >= steps.first) {
      pictures.push_back({std::move(timeline), begin});
    }
    begin += time;
  }
  const std::vector<NodeId> gpus = topology.gpus();
  const auto server = [&](NodeId gpu) { return topology.nodes[gpu.index()].server; };
  for (std::size_t rank = 0; rank < gpus.size() && server(gpus[rank]) == server(gpus[0]); ++rank) {
    const std::string text = byteps_comm_json(pictures, static_cast<std::int32_t>(rank));
    if (!text.empty()) {
      const std::filesystem::path place = std::filesystem::path(folder) / std::to_string(rank);
      make_folder(place.string());
      write_file((place / "comm.json").string(), text);
    }
  }
}

}  // namespace lockstep
