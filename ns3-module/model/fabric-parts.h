/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_PARTS_H
#define FABRIC_PARTS_H

#include "fabric-buffers.h"
#include "fabric-credits.h"
#include "fabric-episodes.h"
#include "fabric-jumps.h"
#include "fabric-messages.h"
#include "fabric-queue-pairs.h"
#include "fabric-receivers.h"
#include "fabric-samples.h"
#include "fabric-senders.h"
#include "fabric-state.h"
#include "fabric-turns.h"
#include "fabric-wires.h"

namespace ns3
{

/**
 * What a Fabric is made of: the state, and the parts that work on it and call each other.
 *
 *     messages -> senders -> wires <-> buffers
 *                    ^         |
 *                    +-- receivers          jumps, episodes: over all of it
 */
struct FabricParts
{
    FabricState state;                  //!< all data
    FabricWires wires{*this};           //!< ports and links
    FabricBuffers buffers{*this};       //!< of switches
    FabricCredits credits{*this};       //!< of NVLinks
    FabricQueuePairs queuePairs{*this}; //!< made and freed
    FabricMessages messages{*this};     //!< begun and delivered
    FabricTurns turns{*this};           //!< of a sender's queue pairs
    FabricSenders senders{*this};       //!< one end
    FabricReceivers receivers{*this};   //!< the other
    FabricJumps jumps{*this};           //!< over periods
    FabricEpisodes episodes{*this};     //!< between idle moments
    FabricSamples samples{*this};       //!< over time
};

} // namespace ns3

#endif /* FABRIC_PARTS_H */
