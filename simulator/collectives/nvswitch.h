#pragma once

#include <cstdint>
#include <vector>

#include "simulator/collectives/algorithm.h"

namespace lockstep {

/// What NVSwitches' own reduction and multicast reach of the links' bandwidth, in percent (NCCL's
/// tuner: NVLS efficiency 0.85 on Hopper, 0.74 on Blackwell).
std::int32_t nvls_percent(GpuArch arch);

/// Channels of NVLS, whatever the size (NCCL: 16 on Hopper; on Blackwell 24, 32 between servers).
std::int32_t nvls_channels(GpuArch arch, std::int32_t servers);

/// How much of a head's part its channels move at once: NCCL's NVLS chunk of 128 KiB
/// (src/enqueue.cc), or 64, 32, 16 KiB for tensors below 64, 8, 2 times what all channels of all
/// heads move, times the channels. `most` caps the chunk.
Bytes nvls_piece(Bytes tensor, std::int32_t channels, std::int32_t heads, Bytes most);

/// The NVSwitches of a server that share out `parts`: places, for part p that of p mod their
/// number; -1 where it has one rank.
std::vector<std::int32_t> add_nvswitches(Schedule& schedule, const std::vector<std::int32_t>& ranks,
                                         std::int32_t count, std::int32_t parts);

/// Appends a switch near a rank as a place and returns it; level 0 is its server's NVSwitch.
std::int32_t add_switch(Schedule& schedule, std::int32_t near, std::int32_t level,
                        std::int32_t index = 0);

/// What one head's part of the tensor does in its server's NVSwitch. All slots carry the pieces of
/// `pieces` (count, channel, start, step).
///
/// Reduction (multimem.ld_reduce): every rank's part flows into the switch, the sum to the head.
/// Returns what the head's further use waits for; nothing where the head is alone.
std::vector<SlotWait> reduce_in_nvswitch(Schedule& schedule, const std::vector<std::int32_t>& ranks,
                                         std::int32_t head, std::int32_t nvswitch,
                                         const Slot& pieces);
/// Multicast (multimem.st): the head's part flows into the switch once `ready`, and from there to
/// every rank but, where the head has it for good, the head.
void multicast_in_nvswitch(Schedule& schedule, const std::vector<std::int32_t>& ranks,
                           std::int32_t head, std::int32_t nvswitch, const Slot& pieces,
                           const std::vector<SlotWait>& ready);

}  // namespace lockstep
