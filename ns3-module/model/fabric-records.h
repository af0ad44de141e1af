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
    int64_t pausedTime; //!< ps, time it was paused, of all classes together
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

/** What a port did in the time since its last sample; there is none of a port that did nothing. */
struct FabricPortSample
{
    int64_t time;   //!< ps
    uint32_t port;  //!< number
    uint64_t bytes; //!< that it began to send
    uint64_t queue; //!< bytes that wait now
};

/** What a queue pair did in the time since its last sample. */
struct FabricPairSample
{
    int64_t time;   //!< ps
    uint32_t pair;  //!< number
    int64_t bytes;  //!< of data that were confirmed
    int64_t window; //!< bytes, now
    double rate;    //!< bits per second, of its pacing now
};

/** The trace sources of a Fabric. */
struct FabricTraces
{
    TracedCallback<const FabricMessageRecord&> message;                //!< delivered
    TracedCallback<int64_t, uint32_t, uint32_t, uint32_t, bool> pause; //!< PFC
    TracedCallback<int64_t, uint32_t, int64_t> storm;                  //!< long pauses
    TracedCallback<int64_t, uint32_t, uint32_t> drop;                  //!< losses
    TracedCallback<const FabricPortSample&> portSample;                //!< every SampleInterval
    TracedCallback<const FabricPairSample&> pairSample;                //!< every SampleInterval
};

} // namespace ns3

#endif /* FABRIC_RECORDS_H */
