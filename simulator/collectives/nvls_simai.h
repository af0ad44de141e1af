#pragma once

#include "simulator/collectives/algorithm.h"

namespace lockstep {

/// SimAI's NVLS all-reduce of one server (MockNccl of release 1.6; docs/models.md): the tensor in
/// four parts, remainder dropped. Every rank sends each part to the NVSwitch as one transfer on one
/// channel, a part once the one before is there (in SimAI once its last
/// bit has left: 50 ns a part earlier); when all ranks' have come, the NVSwitch sends it
/// to every rank. PRECONDITION: an all-reduce, all ranks in one server.
Schedule simai_nvls(const CollectiveRequest& request, const GroupShape& shape);

}  // namespace lockstep
