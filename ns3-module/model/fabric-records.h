/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_RECORDS_H
#define FABRIC_RECORDS_H

#include "ns3/traced-callback.h"

#include <cstdint>

namespace ns3
{

/** What happened to a message. */
struct FabricCompletion
{
    int64_t time;   //!< ps
    uint64_t tag;   //!< of Send()
    bool delivered; //!< otherwise: its last bit has left the sender
};

/** What one port did. */
struct FabricPortStatistics
{
    uint64_t bytes;     //!< sent, headers included
    uint64_t units;     //!< sent
    uint64_t maxQueue;  //!< bytes, largest queue seen (switches with a buffer)
    uint64_t marks;     //!< packets marked
    uint64_t drops;     //!< units dropped in front of it, or damaged on its link
    uint64_t pauses;    //!< how often it was paused
    int64_t pausedTime; //!< ps, time it was paused
    uint64_t storms;    //!< pauses of StormTime or longer
    uint64_t stalls;    //!< how often it had no credits (NVLinks)
};

/** A finished message of a queue pair, for the trace source. */
struct FabricMessageRecord
{
    uint64_t tag;  //!< of Send()
    uint32_t pair; //!< queue pair
    int64_t bytes; //!< data
    int64_t start; //!< ps, when it could first be sent
    int64_t end;   //!< ps, delivered
};

/** The trace sources of a Fabric. */
struct FabricTraces
{
    TracedCallback<const FabricMessageRecord&> message;      //!< delivered
    TracedCallback<int64_t, uint32_t, uint32_t, bool> pause; //!< PFC
    TracedCallback<int64_t, uint32_t, int64_t> storm;        //!< long pauses
    TracedCallback<int64_t, uint32_t, uint32_t> drop;        //!< losses
};

} // namespace ns3

#endif /* FABRIC_RECORDS_H */
