#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/report_flags.h"
#include "trace/physical_log.h"

namespace lockstep {

/// Whether these are logs of Megatron-LM's trainings. ERRORS: some are, and some are not.
bool are_training_logs(const std::vector<PhysicalLog>& logs);

/// What a training log is laid beside, as the flags of `lockstep compare` say.
struct TrainingComparison {
  std::string topology, preset;
  std::optional<double> limit;  ///< of the error of a step; above it the exit code is 1
  bool json = false;
  ReportFlags report;
};

/// Predicts the step of the job that each log lists the arguments of on the flow engine, and prints
/// it beside the iterations that the log tells: those of the last start with the last global batch,
/// without the first of them (start-up) where there are three or more; their median counts.
/// ERRORS: no topology; those of `lockstep simulate --from-megatron-args LOG`.
ExitCode compare_training_logs(const std::vector<PhysicalLog>& logs,
                               const TrainingComparison& comparison);

}  // namespace lockstep
