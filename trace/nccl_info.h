#pragma once

#include <string_view>

#include "trace/physical_log.h"

namespace lockstep {

/// Takes from a line of NCCL's own log (NCCL_DEBUG=INFO; "host:pid:tid [gpu] NCCL INFO …", or
/// RCCL's) what it tells about the run: release, environment, NICs, network, channels, rings,
/// trees, GPU Direct, multicast. Lines that tell nothing are passed over. O(length).
void take_nccl_info(std::string_view line, CommSetting& setting);

/// Where the part of a line that is NCCL's log begins; npos: nowhere.
std::size_t find_nccl_info(std::string_view line);

/// Takes "NCCL_…=value" wherever it stands in a line: command lines, exports, provenance notes.
void take_nccl_environment(std::string_view line, CommSetting& setting);

/// "22902" of nccl-tests' header, as "2.29.2"; empty for 0.
std::string nccl_version_of_number(std::int64_t number);

/// What the name of a table tells: operation, "n4g8", "N2_G8", "n-00016-N-0004". Fills in only what
/// the setting lacks; returns the operation.
CommType take_hints(std::string_view name, CommSetting& setting);

}  // namespace lockstep
