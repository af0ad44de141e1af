#pragma once

#include <optional>

#include "app/network_flags.h"
#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/nccl_time.h"
#include "simulator/network/flow/flow_options.h"

namespace lockstep {

// --preset of `simulate` and `collective`: a kind of cluster, or a file that `calibrate` wrote
// (docs/formats/fabric.md), says what a real cluster makes of its links and of NCCL's latencies.
// Of its rates those are taken that are properties of links and hops: local_ and
// network_efficiency, local_ and network_latency, local_simple, simple_penalty, rendezvous_s and
// floor_s. The others belong to the formula of `compare` (nccl_time.h); how switches add the engine
// has from NCCL.

/// Nothing where the flag is not given. ERRORS: those of compare::preset_named(), with the flag;
/// and in SimAI's flavour, whose rates are SimAI's.
std::optional<NcclRates> real_rates(const NetworkFlags& flags, bool simai_flavour);

/// ERRORS: where the flag is given, since the packet engine takes links as they are.
void refuse_real_rates(const NetworkFlags& flags);

/// Lets links carry so much of their rates.
void take_real_rates(const NcclRates& rates, FlowOptions& flow);

/// Lets NCCL's hops take so long. Requests without its latencies stay.
void take_real_latencies(const NcclRates& rates, CollectiveRequest& request);

}  // namespace lockstep
