#pragma once

#include <string>

#include "base/warnings.h"
#include "workloads/workload.h"

namespace lockstep {

/// Reads a workload file of any form we know, told apart by its content: our JSON starts with '{',
/// everything else is SimAI's text. "-" is standard input. A folder, or a path that NAME.0.et
/// begins with, is a set of Chakra execution traces (chakra_et.h).
///
/// ERRORS: those of FileText, read_simai_txt, read_workload_json and read_chakra_et.
Workload read_workload(const std::string& path, Warnings* warnings = nullptr);

}  // namespace lockstep
