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
 * What a partition of a Fabric is made of: the state, and the parts that work on it and call each
 * other.
 *
 *     messages -> senders -> wires <-> buffers
 *                    ^         |
 *                    +-- receivers          jumps, episodes: over all of it
 */
struct FabricParts
{
    /**
     * \param tables shared by all partitions
     * \param all samples of all partitions
     * \param index number of this one
     */
    FabricParts(FabricTables& tables, FabricSamples& all, std::size_t index)
        : number(static_cast<uint32_t>(index)),
          state(tables),
          samples(all)
    {
    }

    const uint32_t number;              //!< of the partition
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
    FabricSamples& samples;             //!< over time, of all partitions

    /** \return ps of what comes next, INT64_MAX if nothing does */
    int64_t
    GetNextTime() const
    {
        if (episodes.IsFollowing())
        {
            return episodes.GetNextTime();
        }
        if (jumps.IsJumping())
        {
            return jumps.GetNextTime();
        }
        return state.events.IsEmpty() ? INT64_MAX : state.events.Top().time;
    }

    /**
     * Carries out what comes next, which is not to be nothing.
     * \param time ps of it
     */
    void
    Step(int64_t time)
    {
        if (episodes.IsFollowing())
        {
            episodes.Follow(time);
        }
        else if (jumps.IsJumping())
        {
            jumps.Land();
        }
        else if (!state.looking || !state.IsIdle() || !episodes.Turn())
        {
            CarryOut();
        }
    }

    /** Carries out the earliest event. */
    void
    CarryOut();

    /**
     * Carries out the events up to a time.
     * \param last ps, the last such time
     */
    void
    CarryOutUntil(int64_t last)
    {
        while (!state.events.IsEmpty() && state.events.Top().time <= last)
        {
            CarryOut();
        }
    }
};

} // namespace ns3

#endif /* FABRIC_PARTS_H */
