#pragma once

#include <string>
#include <vector>

#include "analysis/compare/predict.h"

namespace lockstep {

/// Replaces the predictions of rows by what the flow engine says of the same collectives on this
/// topology: as many ranks on each server as in the log, on its first servers, carried out as NCCL
/// would there. Rows of more GPUs or servers than it has, and of what NCCL cannot do there, are
/// dropped and counted in `left_out`. With a preset, at what it makes of links and hops
/// (real_rates.h). ERRORS: of the topology and the preset. One simulation a size, group and log.
void predict_on_topology(std::vector<compare::ComparedRow>& rows, const std::string& topology,
                         const std::string& preset, Warnings& left_out);

}  // namespace lockstep
