#pragma once

#include "trace/physical_log.h"

namespace lockstep {

/// The ranks of rank 0's groups ("tp_group", …) in Megatron's order tp-cp-ep-dp-pp: a group's ranks
/// lie as far apart as those of the groups before it are many. Sets log.members by the rows' ranks,
/// and the setting's ranks as far as the groups tell, as a guess. O(rows + ranks).
void place_aicb_groups(PhysicalLog& log, CommSetting& setting);

}  // namespace lockstep
