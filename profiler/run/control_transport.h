#pragma once

#include <memory>

#include "profiler/run/bootstrap.h"
#include "profiler/run/transport.h"

namespace lockstep {

/// A transport that moves no data, for trying a workload, a launcher and a network without GPUs:
/// the ranks of a collective or message meet through the bootstrap and must be of one mind on what
/// it is; computation idles. What would hang on GPUs ends here with the items that ranks are at.
std::unique_ptr<Transport> make_control_transport(Bootstrap& bootstrap);

}  // namespace lockstep
