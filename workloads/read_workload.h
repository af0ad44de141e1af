#pragma once

#include <string>

#include "base/warnings.h"
#include "workloads/workload.h"

namespace lockstep {

/// Reads a workload file of any form we know, told apart by its content: our JSON starts with '{',
/// everything else is SimAI's text. "-" is standard input.
///
/// ERRORS: those of FileText, read_simai_txt and read_workload_json.
Workload read_workload(const std::string& path, Warnings* warnings = nullptr);

}  // namespace lockstep
