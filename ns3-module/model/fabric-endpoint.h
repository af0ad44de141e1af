/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_ENDPOINT_H
#define FABRIC_ENDPOINT_H

#include "fabric-queue-pair.h"
#include "fabric-unit.h"

#include <cstdint>
#include <map>
#include <vector>

namespace ns3
{

/** The sending side of a port that has queue pairs, for one traffic class. */
struct FabricEndpoint
{
    FabricRing control;             //!< ACKs and forwarded units: they go first
    std::vector<uint32_t> pairs;    //!< round robin, NONE where one has left
    std::vector<uint64_t> eligible; //!< bit by place in `pairs`
    uint32_t eligibleCount{0};      //!< bits set
    uint32_t finished{0};           //!< pairs to be dropped from the list
    uint32_t last{0};               //!< place served last
    uint32_t ahead{UINT32_MAX};     //!< queue pair that sent the last train
    uint32_t owed{0};               //!< turns that it lets pass, see FabricTurns::OweTurns()
    int64_t wake{INT64_MAX};        //!< ps, pending WAKE of the port (in that of class 0)

    /**
     * \param pair gets the last place of the round robin
     */
    void
    Join(FabricQueuePair& pair)
    {
        pair.slot = static_cast<uint32_t>(pairs.size());
        pairs.push_back(pair.index);
        eligible.resize((pairs.size() + 63) / 64, 0);
    }

    /**
     * \param slot place in the round robin
     * \param may whether it may send
     */
    void
    SetEligible(uint32_t slot, bool may)
    {
        uint64_t& word = eligible[slot / 64];
        const uint64_t bit = uint64_t{1} << (slot % 64);
        if (((word & bit) != 0) != may)
        {
            word ^= bit;
            eligibleCount += may ? 1U : UINT32_MAX;
        }
    }

    /**
     * \param slot place in the round robin
     * \return whether it may send
     */
    bool
    IsEligible(uint32_t slot) const
    {
        return (eligible[slot / 64] >> (slot % 64) & 1) != 0;
    }
};

/** A message under way. */
struct FabricMessage
{
    int64_t begin;    //!< offset of its first byte
    int64_t end;      //!< offset behind its last byte
    int64_t when;     //!< ps, start
    int64_t after;    //!< ps, what was carried out when it was handed over
    uint64_t tag;     //!< of Send()
    uint32_t pair;    //!< queue pair
    uint32_t next;    //!< of the queue pair, or of the free list
    uint32_t ordinal; //!< in the episode that is recorded
    bool sent;        //!< reported
    bool delivered;   //!< reported
    bool acked;       //!< the sender knows that all has arrived
};

/** Of a queue pair whose packets may come out of order. */
struct FabricSpray
{
    std::vector<uint32_t> ways;       //!< places in the table of routes, if several
    std::map<int64_t, int64_t> early; //!< begin and end of what came out of order
};

} // namespace ns3

#endif /* FABRIC_ENDPOINT_H */
