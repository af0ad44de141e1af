#pragma once

#include <cstdint>
#include <vector>

#include "simulator/collectives/algorithm.h"

namespace lockstep {

/// Over how many rings a request goes: what it says, or else the fewest ranks that any server of
/// the group has, so that each channel leaves a server over a NIC of its own; on a mesh in one
/// server as many as make_rings has orders. (NCCL would choose
/// more for a group with one rank a server.) ERRORS: channels outside 0 … kMaxChannels.
std::int32_t channel_count(const CollectiveRequest& request, const GroupShape& shape);
inline constexpr std::int32_t kMaxChannels = 1024;

/// The rings of a group, one a channel: rings[c][j] is the rank at place j of channel c; place j
/// sends to place j + 1, the last to the first. Where the request asks for more channels than the
/// fewest ranks C of a server, channel c has the order of channel c mod C.
///
/// Order: server after server, each server's ranks in a row. With L ranks in every server, channel
/// c
///   simai     enters each server at local rank c, runs c, c+1, …, c-1 and leaves at c-1, so it
///             changes rails on its way to local rank c of the next server
///   default   leaves each server at the local rank at which it enters the next one, so that it
///             stays on a rail: server k is entered at a(k) and left at a(k+1), a(0) = c, by steps
///             a(k+1) - a(k) = -1, +1, -1, +1, … (for an odd number of servers the last three are
///             -1, -1, +2). Two ranks in each of an odd number of servers cannot close without one
///             change of rail.
/// On a mesh in one server the orders are i -> i + s mod n for every s that has no divisor in
/// common with n, which for a prime n use every link once in each direction; for four ranks the six
/// rings there are, which use each twice. Where servers have unequal numbers of ranks, both take
/// simai's order with the rotation c mod that server's number.
std::vector<std::vector<std::int32_t>> make_rings(const CollectiveRequest& request,
                                                  const GroupShape& shape);

/// Where SimAI takes the ranks of a tensor-parallel group to sit: on as few servers as hold them,
/// in blocks of equal size, whatever servers they are in; so also where a server's GPUs are no
/// multiple of the group's, nor the reverse. Ranks that make no equal blocks stay where they are.
GroupShape simai_tensor_shape(GroupShape shape, std::int32_t gpus_per_server);

/// Size of the chunks when `total` is cut into `parts`: rounded up, as NCCL pads; SimAI rounds down
/// and drops the rest.
Bytes part_size(Bytes total, std::int64_t parts, CollectiveFlavour flavour);

}  // namespace lockstep
