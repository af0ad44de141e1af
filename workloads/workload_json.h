#pragma once

#include <string>
#include <string_view>

#include "workloads/simai_txt.h"
#include "workloads/workload.h"

namespace lockstep {

inline constexpr std::string_view kWorkloadSchema = "lockstep-workload/1";

/// Reads our JSON form of a workload (docs/formats/workload.md) and validates it. Times are whole
/// picoseconds, so that a workload is the same number for number after any round trip.
///
/// ERRORS: Error with the file and the place in the document: not JSON, another schema, an unknown
/// or missing field, a wrong type, and everything validate() refuses.
Workload read_workload_json(std::string_view text, const std::string& file);

/// Writes it, one layer or operation a line, in pieces. How a SimAI text was spelled
/// (LayerTable::header) is not kept. PRECONDITION: validate() accepts the workload.
void write_workload_json(const Workload& workload, const TextSink& sink);
std::string to_workload_json(const Workload& workload);

}  // namespace lockstep
