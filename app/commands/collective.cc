#include <cstdio>
#include <limits>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/collective/collective_options.h"
#include "app/collective/run_collective.h"
#include "app/command.h"
#include "app/report_flags.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/output_capture.h"
#include "base/stop_signal.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep collective --op allreduce --size 1GiB --topology Spectrum-X:g=16
  lockstep collective --op allgather --size 1MiB:64MiB --topology Spectrum-X:g=8 \
      --engine analytic,flow
  lockstep collective --op alltoall --size 64MiB --gpus 16 --topology Spectrum-X:g=64 \
      --placement spread --algorithm direct --json
  lockstep collective --op allreduce --size 16MiB --topology Spectrum-X:g=16 --algorithm ring \
      --jitter 100us --seed 7

The table is that of nccl-tests: a size is the whole tensor (all-gather's output, reduce-scatter's
input, one rank's all-to-all buffer), algbw is size / time, and busbw is algbw times 2(n-1)/n for
an all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 for the others.
)";

ExitCode collective(const CollectiveOptions& options) {
  const Interruptible interruptible;
  const CollectiveSweep sweep = run_collective(options);
  for (const std::string& warning : sweep.warnings) {
    fmt::print(standard_error(), "lockstep: warning: {}\n", warning);
  }
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  const std::size_t width = on_terminal() ? terminal_width() : kAny;
  write_file("-", options.json ? with_command(collective_json(sweep))
                               : for_terminal(collective_table(sweep, width)));
  if (sweep.missing > 0) {
    fmt::print(standard_error(), "lockstep: stopped: {} of {} sizes are missing\n", sweep.missing,
               sweep.missing + sweep.points.size());
    return ExitCode::kInterrupted;
  }
  return ExitCode::kDone;
}

CommandBody define(CLI::App& app) {
  const auto options = std::make_shared<CollectiveOptions>();
  define_collective_options(app, *options);
  return [options] { return collective(*options); };
}

}  // namespace

extern const Command kCollectiveCommand;
const Command kCollectiveCommand = {
    "collective", "one collective on a topology: time and bandwidth as nccl-tests shows them",
    kExamples, define};

}  // namespace lockstep
